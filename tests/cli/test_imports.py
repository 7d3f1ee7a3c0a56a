"""Imports that no process of a run pays for: they would be paid four times a run, before its first order."""

import subprocess
import sys

import pytest


def said_by(program: str) -> list[str]:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_a_run_without_a_page_imports_neither_what_draws_nor_what_tabulates() -> None:
    imported = set(said_by("import sys, runs.run; print(*sys.modules)"))
    assert "runs.run" in imported
    assert not imported & {"matplotlib", "pyspark", "scipy.stats", "pandas", "pika", "reports.live"}


def test_launcher_and_reporter_do_without_a_compiler() -> None:
    imported = set(said_by("import sys, runs.run, runs.services, stats_reporter.service; print(*sys.modules)"))
    assert "stats_reporter.service" in imported
    assert "numba" not in imported


@pytest.mark.skipif(sys.platform != "linux", reason="counts threads in /proc")
def test_a_component_has_no_threads_for_linear_algebra() -> None:
    imports = "import cli.main, gateway.service, matching_engine.service, os"
    assert said_by(f"{imports}; print(len(os.listdir('/proc/self/task')))") == ["1"]


def test_a_component_loads_its_kernels_without_scipy() -> None:
    program = """
import sys
from runs.component import do_without_scipy
from transports.registry import listen
do_without_scipy()
listen("zeromq://127.0.0.1:0", "token").close()
print("numba" in sys.modules, any(name.startswith("scipy.") for name in sys.modules))
"""
    assert said_by(program) == ["True", "False"]
