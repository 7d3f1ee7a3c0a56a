"""Kernels on disk: an edit of a file whose constants a kernel has frozen is noticed by the next process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

KERNEL = """
import constants
from exchange.compiled import cached_kernel

SIZE = constants.SIZE

@cached_kernel(constants)
def size():
    return SIZE

print(size(), sum(size.stats.cache_hits.values()))
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "kernel.py").write_text(KERNEL)
    return tmp_path


def sized(folder: Path, size: int) -> str:
    """Output of a process that runs the kernel with this constant in the other file: the constant, and cache hits."""
    (folder / "constants.py").write_text(f"SIZE = {size}\n")
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), os.getcwd()]), "PYTHONDONTWRITEBYTECODE": "1"}
    run = subprocess.run([sys.executable, folder / "kernel.py"], env=env, capture_output=True, text=True, check=True)
    return run.stdout.strip()


def test_an_edited_constant_reaches_the_kernel_and_an_unedited_one_costs_no_compilation(folder: Path) -> None:
    assert [sized(folder, size) for size in (10, 10, 11, 10)] == ["10 0", "10 1", "11 0", "10 1"]
