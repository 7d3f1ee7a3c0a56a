"""A Spark master with two workers, and a Spark Connect server, from the wheel, on free ports of this machine."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Thread, Timer
from typing import IO

from spark.sessions.cluster import home_of
from spark.sessions.java import find_java
from spark.sessions.session import LOGGING, spark_environment

PATIENCE_S = 120.0

DEPLOY = "org.apache.spark.deploy"
CONNECT_SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"
BINDING = "spark.connect.grpc.binding"
ADDRESS_LOGGING = f"""\
appender.console.target = SYSTEM_ERR
logger.address.name = {CONNECT_SERVER}
logger.address.level = info
"""
WORK_FOLDERS = ("work-1", "work-2")
LOCAL = ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]


@contextmanager
def standalone_cluster(folder: Path, work_folders: Sequence[str] = WORK_FOLDERS) -> Iterator[str]:
    """Yield the master's URL; all processes are gone at the end. A worker runs for each of `work_folders`, in it."""
    with ExitStack() as daemons:
        master = daemons.enter_context(_daemon(folder, f"{DEPLOY}.master.Master", LOCAL))
        url = _word_from_log(master, r"Starting Spark master at (spark://\S+)")
        for work_folder in work_folders:
            arguments = ["--cores", "1", "--memory", "1g", "--work-dir", str(folder / work_folder), *LOCAL, url]
            worker = daemons.enter_context(_daemon(folder, f"{DEPLOY}.worker.Worker", arguments))
            _word_from_log(worker, "Successfully (registered) with master")
        yield url


@contextmanager
def connect_server(folder: Path) -> Iterator[str]:
    """Yield the server's URL; its process, which logs its address alone, is gone at the end."""
    (folder / "log4j2.properties").write_text(LOGGING.format(level="off") + ADDRESS_LOGGING)
    settings = {f"{BINDING}.address": "127.0.0.1", f"{BINDING}.port": "0", "spark.ui.enabled": "false"}
    arguments = ["--master", "local[2]", "--class", CONNECT_SERVER]
    arguments += ["--driver-java-options", f"-Dlog4j2.configurationFile={folder / 'log4j2.properties'}"]
    for name, value in settings.items():
        arguments += ["--conf", f"{name}={value}"]
    with _daemon(folder, f"{DEPLOY}.SparkSubmit", [*arguments, "spark-internal"]) as server:
        port = _word_from_log(server, r"Spark Connect server started at: .*:(\d+)")
        yield f"sc://127.0.0.1:{port}"


@contextmanager
def _daemon(folder: Path, name: str, arguments: list[str]) -> Iterator[subprocess.Popen[str]]:
    home = home_of("spark://", folder)  # home_of looks only at the scheme: any cluster but local-cluster
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


def _word_from_log(process: subprocess.Popen[str], pattern: str) -> str:
    """Wait for a line of the daemon's log that matches, and return the pattern's group, which every pattern has.

    A thread reads the later lines, since a full pipe would stop the daemon.
    """
    stream: IO[str] = process.stderr  # type: ignore[assignment]
    patience = Timer(PATIENCE_S, process.terminate)  # its log ends then, and this wait, too
    patience.start()
    for line in stream:
        match = re.search(pattern, line)
        if match:
            patience.cancel()
            Thread(target=_read_to_end, args=[stream]).start()
            return match[1]
    raise AssertionError(f"the daemon ended, and its log has no line with {pattern}")


def _read_to_end(stream: IO[str]) -> None:
    """Read until the daemon is gone."""
    with stream:
        stream.read()
