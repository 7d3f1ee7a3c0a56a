"""Imports that no process of a run pays for: they would be paid four times a run, before its first order."""

import subprocess
import sys

import pytest

IMPORTS_OF_A_RUN = """
import sys
import exchange_simulation.launching.run, exchange_simulation.launching.services, stats_reporter.service
print(*sys.modules)
"""


def printed(*words: object) -> list[str]:
    done = subprocess.run([sys.executable, *map(str, words)], capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_launcher_and_reporter_import_no_compiler_and_no_drawing() -> None:
    """Neither do they import what makes tables."""
    imported = set(printed("-c", IMPORTS_OF_A_RUN))
    assert {"exchange_simulation.launching.run", "stats_reporter.service"} <= imported
    assert not imported & {
        "numba",
        "matplotlib",
        "pyspark",
        "scipy.stats",
        "pandas",
        "pika",
        "exchange_simulation.reports.live",
    }


def test_a_simulation_s_parts_import_no_spark() -> None:
    """Each process that matches a part would import it."""
    program = "import sys, exchange_simulation.experiments.simulate.partitions; print(*sys.modules)"
    assert "pyspark" not in printed("-c", program)


@pytest.mark.skipif(sys.platform != "linux", reason="counts threads in /proc")
def test_a_component_has_no_threads_for_linear_algebra() -> None:
    program = """
import os
import exchange_simulation.cli.main, gateway.service, matching_engine.service
from transports.registry import listen
listen("zeromq://127.0.0.1:0", "token").close()  # a listener over ZeroMQ loads kernels
print(len(os.listdir("/proc/self/task")))
"""
    assert printed("-c", program) == ["1"]
