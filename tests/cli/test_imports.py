"""Imports that no process of a run pays for: they would be paid four times a run, before its first order."""

import subprocess
import sys

import pytest


def said_by(program: str) -> list[str]:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_launcher_and_reporter_import_no_compiler_and_nothing_that_draws_or_tabulates() -> None:
    imported = set(said_by("import sys, runs.run, runs.services, stats_reporter.service; print(*sys.modules)"))
    assert {"runs.run", "stats_reporter.service"} <= imported
    assert not imported & {"numba", "matplotlib", "pyspark", "scipy.stats", "pandas", "pika", "reports.live"}


@pytest.mark.skipif(sys.platform != "linux", reason="counts threads in /proc")
def test_a_component_loads_its_kernels_without_scipy_and_has_no_threads_for_linear_algebra() -> None:
    program = """
import os, sys
from runs.component import do_without_scipy
from transports.registry import listen
do_without_scipy()
import cli.main, gateway.service, matching_engine.service
print(len(os.listdir("/proc/self/task")))
listen("zeromq://127.0.0.1:0", "token").close()
print("numba" in sys.modules, any(name.startswith("scipy.") for name in sys.modules))
"""
    assert said_by(program) == ["1", "True", "False"]
