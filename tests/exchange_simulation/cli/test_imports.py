"""Imports that no process of a run pays for: they would be paid four times a run, before its first order."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.exchange_command import exchange

IMPORTS_OF_A_RUN = """
import sys
import exchange_simulation.launching.run, exchange_simulation.launching.services, stats_reporter.service
print(*sys.modules)
"""


def printed(*words: object) -> list[str]:
    done = subprocess.run([sys.executable, *map(str, words)], capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_launcher_and_reporter_import_no_compiler_and_nothing_that_draws_or_tabulates() -> None:
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


@pytest.mark.skipif(sys.platform != "linux", reason="counts threads in /proc")
def test_a_component_loads_its_kernels_without_scipy_and_has_no_threads_for_linear_algebra() -> None:
    program = """
import os, sys
from exchange_simulation.launching.component import do_without_scipy
from transports.registry import listen
do_without_scipy()
import exchange_simulation.cli.main, gateway.service, matching_engine.service
print(len(os.listdir("/proc/self/task")))
listen("zeromq://127.0.0.1:0", "token").close()
print("numba" in sys.modules, any(name.startswith("scipy.") for name in sys.modules))
"""
    assert printed("-c", program) == ["1", "True", "False"]


def test_components_load_their_kernels_without_the_compiler_s_linear_algebra(tmp_path: Path) -> None:
    first = imported_by_components(tmp_path, "first")  # what is not on disk is compiled now
    is_compiled = any("numba.np.linalg" in names for names in first)
    for names in imported_by_components(tmp_path, "second") if is_compiled else first:
        assert "numba.core.caching" in names
        assert "numba.np.linalg" not in names


def imported_by_components(results: Path, name: str) -> list[str]:
    """What each process of a run says that it imports."""
    settings = ("--json", "--no-spark", "--no-page", "--results", results, "--transport", "tcp", "--orders", 100)
    exchange("run", *settings, "--name", name, PYTHONPROFILEIMPORTTIME="1")
    return [(results / name / f"{component}.log").read_text() for component in ("engine", "gateway", "reporter")]


def test_a_kernel_that_is_not_on_disk_is_compiled_and_one_that_is_on_disk_is_loaded(tmp_path: Path) -> None:
    source = tmp_path / "sums.py"
    source.write_text("""
import numpy as np
from exchange_simulation.launching.component import do_without_scipy, load_kernels_alone
do_without_scipy()
load_kernels_alone()
import numba

@numba.njit(cache=True)
def total(numbers):
    return numbers.sum()

print(total(np.arange(5)), total(np.arange(5.0)), len(total.stats.cache_hits))
""")
    assert [printed(source) for _ in range(2)] == [["10", "10.0", "0"], ["10", "10.0", "2"]]
