"""Chooses what answers a query: the master that the user names, the tables' warm server, or a session of our own."""

from __future__ import annotations

from collections.abc import Mapping

from exchange_simulation.launching.files import local_path
from spark.sessions.warm_server import server_of

MASTER = "local[2]"


def master_for(tables: str, master: str | None, settings: Mapping[str, str]) -> str:
    """Return the master that was given; else the server of these tables, if there is one; else MASTER.

    With settings of Spark's own, a session is opened, since a server has its settings already.
    """
    if master is not None:
        return master
    folder = local_path(tables)
    server = None if folder is None or settings else server_of(folder)
    return MASTER if server is None else server.url
