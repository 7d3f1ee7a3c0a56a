"""The groups of tests in pytest-xdist. tests/conftest.py describes their purpose."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

GROUPED_TESTS = """
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


def test_one_process_runs_all_tests_of_a_group(tmp_path: Path) -> None:
    """Regression: pytest 9.2 with pytest-xdist 3.8 silently ignored groups, so each process started a broker."""
    (tmp_path / "test_grouped.py").write_text(GROUPED_TESTS)
    finished = subprocess.run(
        [sys.executable, "-m", "pytest", "--numprocesses", "2", "--dist", "loadgroup", "--verbose"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    processes: dict[str, set[str]] = {"broker": set(), "spark": set()}
    for process, group in re.findall(r"\[(gw\d)\].*test_it\[(broker|spark)-\d\]", finished.stdout):
        processes[group].add(process)
    assert len(processes["broker"]) == 1, finished.stdout
    assert len(processes["spark"]) == 1, finished.stdout
