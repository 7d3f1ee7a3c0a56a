"""What a master is: the word by which a user says where Spark runs."""

from __future__ import annotations

import re

CONNECT = "sc://"
STANDALONE = "spark://"
LOCAL_CLUSTER = "local-cluster"


def is_one_jvm(master: str) -> bool:
    """Return whether executors are threads of the session's own JVM: local, local[N], local[*]."""
    return re.fullmatch(r"local(\[[^]]*\])?", master) is not None


def is_this_machine(master: str) -> bool:
    """Return whether all of Spark is on this machine: local, local[N], local-cluster[...]."""
    return master.startswith("local")


def is_local_cluster(master: str) -> bool:
    """Return whether executors are processes of this machine, which the session starts: local-cluster[...]."""
    return master.startswith(LOCAL_CLUSTER)


def is_standalone(master: str) -> bool:
    """Return whether the master is that of a standalone cluster: spark://HOST:PORT."""
    return master.startswith(STANDALONE)


def is_connect(master: str) -> bool:
    """Return whether the master is a server of Spark Connect: sc://HOST:PORT."""
    return master.startswith(CONNECT)
