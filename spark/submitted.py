"""Our jobs through spark-submit: it starts the JVM, chooses the master, and starts this program once more inside.

exchange spark submit ──▶ spark-submit ── JVM ──▶ python START JOB ... ──▶ open_session, which finds that JVM
                             └── our packages, as a zip, to driver and executors
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from spark.errors import SparkUnavailableError
from spark.java_errors import root_cause
from spark.jvm import SESSION_PREFIX, remove_at_exit
from spark.package import package_zip

PR_SET_PDEATHSIG = 1

START = """\
import sys

from cli.main import main

main(sys.argv[1:])
"""


def is_submitted() -> bool:
    """Whether spark-submit has started this process."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


@contextmanager
def submitted_session(settings: Mapping[str, str]) -> Iterator[SparkSession]:
    """A session of the JVM that started us; what spark-submit was told comes before `settings`."""
    conf = SparkConf()
    for name, value in settings.items():
        conf.setIfMissing(name, value)
    try:
        session = SparkSession(SparkContext.getOrCreate(conf))
    except (Py4JError, PySparkException) as failure:
        raise SparkUnavailableError(f"Spark did not start ({root_cause(failure)}): check the master") from failure
    folder = Path(session.conf.get("spark.local.dir") or "")
    if folder.name.startswith(SESSION_PREFIX):  # who made it may be killed, and with it this JVM
        remove_at_exit(session.sparkContext._gateway, folder)
    try:
        yield session
    finally:
        session.stop()


def submit(
    folder: Path, spark_home: Path, environment: Mapping[str, str], options: Sequence[str], job: Sequence[str]
) -> int:
    """Run spark-submit with its own options and the arguments of one of our commands; its exit code."""
    start = folder / "start.py"
    start.write_text(START)
    zipped = str(package_zip(folder))
    command = [str(spark_home / "bin" / "spark-submit"), "--name", "exchange", "--py-files", zipped]
    return subprocess.run(
        [*command, *options, str(start), *job],
        env={**os.environ, **environment},
        preexec_fn=_end_with_us if sys.platform == "linux" else None,
        check=False,
    ).returncode


def _end_with_us() -> None:
    """In the child, which becomes the JVM: SIGTERM when the process that waits for it is gone, however it went."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
