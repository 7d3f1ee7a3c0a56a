"""Ids of a host that other hosts may share: of its machine, and of its monotonic clock.

Two hosts with the same id share the thing. If the kernel does not tell an id, as outside Linux, the id is a random one,
which no other host has: what is not known to be shared counts as not shared.
"""

from __future__ import annotations

import os
import uuid

from exchange_simulation.launching.record.begun import BOOT_ID
from exchange_simulation.launching.record.machine import text_of

RANDOM_ID = f"unknown {uuid.uuid4()}"
"""The id of this process in place of one that the kernel does not tell."""


def machine_id() -> str:
    """Return the id of the kernel's start, which hosts on one machine share."""
    return text_of(BOOT_ID) or RANDOM_ID


def clock_id() -> str:
    """Return the id of this process's monotonic clock: processes of one kernel and time namespace share a clock."""
    try:
        namespace = os.readlink("/proc/self/ns/time")
    except OSError:  # the kernel has no time namespaces
        namespace = ""
    return f"{machine_id()} {namespace}"
