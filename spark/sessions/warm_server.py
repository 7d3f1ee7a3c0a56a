"""A warm server of Spark Connect for one folder of tables on this machine, and how clients find it.

    exchange spark server ── its JVM ── Spark Connect on 127.0.0.1 ◀── exchange spark sql, spark_tables()
             └── CACHE/server-HOST-HASH.json, locked while it runs: address and token ──▶ clients of the same user

The JVM ends with the process that started it, however that ends, and the lock goes with that process, too.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import secrets
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyspark
from pyspark import SparkContext

from spark.errors import SparkUnavailableError, TablesBusyError
from spark.sessions.folders import private_folders
from spark.sessions.session import open_session
from spark.sessions.settings import DRIVER_OPTIONS, PLUGINS, with_overrides

HOST = "localhost"
"""Clients of a server on localhost send their token without TLS."""
SETTINGS = {
    PLUGINS: "org.apache.spark.sql.connect.SparkConnectPlugin",
    "spark.connect.grpc.binding.address": "127.0.0.1",
    "spark.connect.grpc.binding.port": "0",
    # Each session has Python files of its own.
    "spark.sql.artifact.isolation.enabled": "true",
    "spark.sql.artifact.isolation.alwaysApplyClassloader": "true",
    # A server lives long enough for Java's second compiler.
    DRIVER_OPTIONS: "-XX:TieredStopAtLevel=4",
}
TOKEN = "spark.connect.authenticate.token"
READING_PATIENCE_S = 1.0
"""A client locks the file for the moment in which it looks whether a server has locked it."""
LOOK_S = 0.01


@dataclass(frozen=True, kw_only=True)
class WarmServer:
    """A server that runs. `url` has its token."""

    url: str
    pid: int
    """The process to which SIGTERM goes, to stop the server."""
    spark: str
    """The version of pyspark that it runs."""


class ServerFile:
    """The file by which clients find the server of a folder of tables. Only its user can read it."""

    def __init__(self, tables: Path) -> None:
        """SparkUnavailableError if the user has no folder that nobody else may write."""
        folder = next(private_folders(), None)
        if folder is None:
            raise SparkUnavailableError(
                "a server needs a folder that is yours alone: set XDG_CACHE_HOME to one that you may write"
            )
        self._tables = tables
        place = hashlib.sha256(os.fsencode(tables.resolve())).hexdigest()[:16]
        self.path = folder / f"server-{socket.gethostname()}-{place}.json"

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the file until the block's end, when it is emptied. TablesBusyError if another server has locked it."""
        with self._open_locked() as file:
            os.ftruncate(file.fileno(), 0)
            try:
                yield
            finally:
                os.ftruncate(file.fileno(), 0)

    def write(self, server: WarmServer) -> None:
        """Say where the server is. The file must be locked."""
        self.path.write_text(json.dumps(vars(server)))

    def read(self) -> WarmServer | None:
        """Return the server that has locked the file; None if there is none, or if it is starting."""
        try:
            with self.path.open("rb") as file:
                if _lock(file, fcntl.LOCK_SH):
                    return None
                content = file.read()
        except FileNotFoundError:
            return None
        return WarmServer(**json.loads(content)) if content else None

    def _open_locked(self) -> Any:
        descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600)
        file = open(descriptor, "r+b")  # noqa: SIM115 (the caller closes it)
        until_s = time.monotonic() + READING_PATIENCE_S
        while not _lock(file, fcntl.LOCK_EX):
            if time.monotonic() > until_s:
                file.close()
                raise TablesBusyError(
                    f"{self._tables} has a server already: use it, or stop it with exchange spark server --stop"
                )
            time.sleep(LOOK_S)
        return file


def _lock(file: Any, kind: int) -> bool:
    """Lock the file, and return whether that was possible at once."""
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def server_of(tables: Path) -> WarmServer | None:
    """Return the server for this folder of tables; None if there is none, or one of another version of Spark."""
    try:
        server = ServerFile(tables).read()
    except SparkUnavailableError:
        return None
    if server is None or server.spark != pyspark.__version__:
        return None
    return server


@contextmanager
def warm_server(tables: Path, master: str, settings: Mapping[str, str]) -> Iterator[tuple[WarmServer, Any]]:
    """Run a server for this folder of tables; yield it, and the process of its JVM. Clients find it only after `write`.

    TablesBusyError if the folder has a server, SparkUnavailableError if Spark does not start.
    """
    token = secrets.token_urlsafe(32)
    with (
        ServerFile(tables).locked(),
        open_session(master, settings=with_overrides(SETTINGS, settings), private_settings={TOKEN: token}) as spark,
    ):
        jvm: Any = spark._jvm
        scala_object = getattr(jvm.org.apache.spark.sql.connect.service, "SparkConnectService$")
        port = getattr(scala_object, "MODULE$").localPort()
        url = f"sc://{HOST}:{port}/;token={token}"
        gateway: Any = SparkContext._gateway
        yield WarmServer(url=url, pid=os.getpid(), spark=pyspark.__version__), gateway.proc
