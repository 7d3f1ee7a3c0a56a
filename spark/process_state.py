"""What pyspark changes in the Python process that uses it, given back when the session closes.

pyspark keeps one JVM for the life of the process, and with it a SIGINT handler, a path entry, environment
variables and loggers. A library's caller gets the process back as it was.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager

from pyspark import SparkContext
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

CHATTY_LOGGERS = ("DataFrameQueryContextLogger", "SQLQueryContextLogger")
"""They print a failure's Java stack trace on stderr, although it is raised as well."""


@contextmanager
def own_process_state(environment: Mapping[str, str]) -> Iterator[None]:
    """`environment` for Spark while the session lasts; afterwards everything as before."""
    with ExitStack() as stack:
        for state in (_variables(environment), _import_path(), _interrupt(), _loggers(), _one_jvm()):
            stack.enter_context(state)
        yield


@contextmanager
def _variables(environment: Mapping[str, str]) -> Iterator[None]:
    former = dict(os.environ)
    # Another Spark's settings (SPARK_HOME, SPARK_CONF_DIR, SPARK_REMOTE, PYSPARK_SUBMIT_ARGS) are not for us.
    for name in [name for name in former if name.startswith(("SPARK_", "PYSPARK_"))]:
        del os.environ[name]
    os.environ.update(environment)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(former)


@contextmanager
def _import_path() -> Iterator[None]:
    former = list(sys.path)
    try:
        yield
    finally:
        sys.path[:] = former


@contextmanager
def _interrupt() -> Iterator[None]:
    former = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():  # only there may a handler be set
            signal.signal(signal.SIGINT, former)


@contextmanager
def _loggers() -> Iterator[None]:
    loggers = [PySparkLogger.getLogger(name) for name in CHATTY_LOGGERS]
    former = [logger.disabled for logger in loggers]
    for logger in loggers:
        logger.disabled = True
    logging.getLogger().addFilter(_is_no_broken_command)
    try:
        yield
    finally:
        logging.getLogger().removeFilter(_is_no_broken_command)
        for logger, was_disabled in zip(loggers, former, strict=True):
            logger.disabled = was_disabled


def _is_no_broken_command(record: logging.LogRecord) -> bool:
    """py4j logs with the root logger, with its stack, that Ctrl-C came while it waited for Java."""
    return not str(record.msg).endswith("while sending command.")


@contextmanager
def _one_jvm() -> Iterator[None]:
    """pyspark's class attributes forget our JVM, also where it died too early to be stopped properly."""
    former = SparkContext._gateway, SparkContext._jvm
    SparkContext._gateway = SparkContext._jvm = None
    try:
        yield
    finally:
        SparkContext._gateway, SparkContext._jvm = former
        SparkContext._active_spark_context = None
        SparkSession._instantiatedSession = SparkSession._activeSession = None
