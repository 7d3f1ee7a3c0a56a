"""Kernels on disk: the next process notices an edit of a file whose constants were compiled into a kernel."""

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
RUN_IN_FORKS = """
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
"""Runs the kernel in one forked process after another, each with its own constant. All share the imports."""


def lines_of_processes(folder: Path, *sizes: int) -> list[str]:
    """Return the line of each process: the constant, and the number of cache hits."""
    (folder / "kernel.py").write_text(KERNEL)
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), os.getcwd()]), "PYTHONDONTWRITEBYTECODE": "1"}
    script = [sys.executable, "-c", RUN_IN_FORKS, *map(str, sizes)]
    run = subprocess.run(script, env=env, cwd=folder, capture_output=True, text=True, check=True)
    return run.stdout.splitlines()


def test_a_kernel_is_compiled_again_only_for_a_new_constant(tmp_path: Path) -> None:
    assert lines_of_processes(tmp_path, 10, 10, 11, 10) == ["10 0", "10 1", "11 0", "10 1"]
