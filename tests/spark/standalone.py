"""A Spark master with one worker, and a Spark Connect server, from the pyspark wheel, on free ports of this machine."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import IO

from spark.sessions.cluster import home_of
from spark.sessions.java import find_java
from spark.sessions.session import LOGGING, spark_environment

DEPLOY = "org.apache.spark.deploy"
CONNECT_SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"
BINDING = "spark.connect.grpc.binding"
ADDRESS_LOGGING = f"""\
appender.console.target = SYSTEM_ERR
logger.address.name = {CONNECT_SERVER}
logger.address.level = info
"""
LOCAL = ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]


@contextmanager
def standalone_cluster(folder: Path) -> Iterator[str]:
    """Its URL; both processes are gone at the end."""
    with _daemon(folder, f"{DEPLOY}.master.Master", LOCAL) as master:
        url = _said(master, r"Starting Spark master at (spark://\S+)")
        work = ["--cores", "2", "--memory", "1g", "--work-dir", str(folder / "work"), *LOCAL, url]
        with _daemon(folder, f"{DEPLOY}.worker.Worker", work) as worker:
            _said(worker, "(Successfully registered) with master")
            yield url


@contextmanager
def connect_server(folder: Path) -> Iterator[str]:
    """Its URL; it is gone at the end. It logs its address alone."""
    (folder / "log4j2.properties").write_text(LOGGING.format(level="off") + ADDRESS_LOGGING)
    settings = {f"{BINDING}.address": "127.0.0.1", f"{BINDING}.port": "0", "spark.ui.enabled": "false"}
    confs = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    logging = ["--driver-java-options", f"-Dlog4j2.configurationFile={folder / 'log4j2.properties'}"]
    submitted = ["--master", "local[2]", "--class", CONNECT_SERVER, *logging, *confs, "spark-internal"]
    with _daemon(folder, f"{DEPLOY}.SparkSubmit", submitted) as server:
        port = _said(server, r"Spark Connect server started at: .*:(\d+)")
        yield f"sc://127.0.0.1:{port}"


@contextmanager
def _daemon(folder: Path, name: str, arguments: list[str]) -> Iterator[subprocess.Popen[str]]:
    home = home_of("spark://", folder)
    environment = {**os.environ, **spark_environment(find_java(), home), "SPARK_LOCAL_DIRS": str(folder)}
    command = [str(home / "bin" / "spark-class"), name, *arguments]
    process = subprocess.Popen(
        command, cwd=folder, env=environment, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    )
    try:
        yield process
    finally:
        process.terminate()
        process.wait()


def _said(process: subprocess.Popen[str], pattern: str) -> str:
    """Return what the daemon says of itself. What it says later is read and thrown away: a full pipe would stop it."""
    stream: IO[str] = process.stderr  # type: ignore[assignment]
    for line in stream:
        if found := re.search(pattern, line):
            Thread(target=_throw_away, args=[stream]).start()
            return found[1]
    raise AssertionError(f"the daemon ended without a word of {pattern}")


def _throw_away(stream: IO[str]) -> None:
    """Read until the daemon is gone."""
    with stream:
        stream.read()
