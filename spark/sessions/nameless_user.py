"""A user whose number has no name in /etc/passwd, as in some containers: Java and Hadoop want one."""

from __future__ import annotations

import os
import pwd

from py4j.java_gateway import JavaGateway  # type: ignore[import-untyped]

from spark.errors import SparkUnavailableError


def nameless_user() -> str | None:
    """Return a name for a user whose number /etc/passwd lacks, as in some containers; None for a user with a name."""
    number = os.getuid()
    try:
        pwd.getpwuid(number)
    except KeyError:
        return f"user-{number}"
    return None


def log_in(gateway: JavaGateway, user: str) -> None:
    """Log a user in at Hadoop, which asks the system for a name otherwise, and fails where the system has none."""
    users = gateway.jvm.org.apache.hadoop.security.UserGroupInformation
    users.setLoginUser(users.createRemoteUser(user))


def needs_name(place: str) -> SparkUnavailableError:
    """Return the error for a user without a name at a place where Java looks for the name in processes of its own."""
    number = os.getuid()
    return SparkUnavailableError(
        f"{place} needs a user with a name, and {number} has no entry in /etc/passwd: add one, "
        f"as measurer:x:{number}:{os.getgid()}::/tmp:/bin/sh; local[N] needs none"
    )
