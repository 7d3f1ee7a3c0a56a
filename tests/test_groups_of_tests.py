"""The groups of tests, which `make test` gives to pytest-xdist: tests/conftest.py says what they are for."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

GROUPED = """
import pytest

@pytest.mark.parametrize("number", range(10))
@pytest.mark.parametrize(
    "group",
    [pytest.param("broker", marks=pytest.mark.xdist_group("broker")),
     pytest.param("spark", marks=pytest.mark.xdist_group("spark"))],
)
def test_it(group, number):
    pass
"""


def test_tests_of_a_group_are_run_by_one_process(tmp_path: Path) -> None:
    """pytest 9.2 and pytest-xdist 3.8 ignore groups without a word, so that each process has a broker of its own."""
    (tmp_path / "test_grouped.py").write_text(GROUPED)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--numprocesses", "2", "--dist", "loadgroup", "--verbose"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    processes: dict[str, set[str]] = {"broker": set(), "spark": set()}
    for process, group in re.findall(r"\[(gw\d)\].*test_it\[(broker|spark)-\d\]", done.stdout):
        processes[group].add(process)
    assert [len(names) for names in processes.values()] == [1, 1], done.stdout
