"""Kernels on disk: an edit of a file whose constants a kernel has frozen is noticed by the next process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

KERNEL = """
import constants
from exchange.compiled import cached_kernel

SIZE = constants.SIZE

@cached_kernel(constants)
def size():
    return SIZE

print(size(), sum(size.stats.cache_hits.values()), flush=True)
"""
EACH_BY_ITSELF = """
import os, runpy, sys
from pathlib import Path
import numba
import exchange.compiled

numba.njit(lambda: 0)()  # imports the compiler
for size in sys.argv[1:]:
    Path("constants.py").write_text(f"SIZE = {size}\\n")
    if os.fork() == 0:
        runpy.run_path(os.path.abspath("kernel.py"), run_name="__main__")
        os._exit(0)
    os.wait()
"""
"""Processes that run the kernel one after the other, each with its constant in the other file; they share imports."""


def sized(folder: Path, *sizes: int) -> list[str]:
    """What each process says: the constant, and cache hits."""
    (folder / "kernel.py").write_text(KERNEL)
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), os.getcwd()]), "PYTHONDONTWRITEBYTECODE": "1"}
    words = [sys.executable, "-c", EACH_BY_ITSELF, *map(str, sizes)]
    return subprocess.run(words, env=env, cwd=folder, capture_output=True, text=True, check=True).stdout.splitlines()


def test_a_kernel_is_compiled_anew_only_for_an_edited_constant(tmp_path: Path) -> None:
    assert sized(tmp_path, 10, 10, 11, 10) == ["10 0", "10 1", "11 0", "10 1"]
