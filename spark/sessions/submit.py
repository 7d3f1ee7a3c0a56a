"""Runs one of our commands through spark-submit, which sends it and our packages to a cluster.

exchange spark submit ──▶ spark-submit ── JVM ──▶ python START JOB ... ──▶ open_session, which finds that JVM
                             └── our packages, as a zip (--py-files), to driver and executors
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

PR_SET_PDEATHSIG = 1
START = """\
import sys

from spark.sessions.package import use_unpacked

use_unpacked()

from exchange_simulation.cli.main import main

main(sys.argv[1:])
"""
"""The program of the driver that spark-submit starts: the command itself. Nothing here imports that package.

It imports from the unpacked zip, as executors do: kernels cannot be loaded from a zip.
"""


def is_submitted() -> bool:
    """Return whether spark-submit has started this process."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def submit(
    folder: Path,
    spark_home: Path,
    environment: Mapping[str, str],
    options: Sequence[str],
    job: Sequence[str],
    descriptors: Sequence[int],
) -> int:
    """Run spark-submit with `options` and the arguments of one of our commands; return its exit code.

    spark-submit has these descriptors open.
    """
    start = folder / "start.py"
    start.write_text(START)
    command = [str(spark_home / "bin" / "spark-submit"), "--name", "exchange"]
    return subprocess.run(
        [*command, *options, str(start), *job],
        env={**os.environ, **environment},
        preexec_fn=_end_with_parent if sys.platform == "linux" else None,
        pass_fds=descriptors,
        check=False,
    ).returncode


def _end_with_parent() -> None:
    """In the child, which becomes the JVM: ask for a SIGTERM when the parent process is gone, however it went."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
