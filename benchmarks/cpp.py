"""Builds the C++ references, each once in a process, in a directory that is removed when the process ends."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import zmq

FLAGS = ("-O3", "-march=native", "-std=c++17")
_SOURCES = Path(__file__).parent / "reference"


@cache
def compiler() -> str | None:
    """Return the path of the C++ compiler: $CXX, else g++, clang++ or c++. None if no compiler is installed."""
    for name in (os.environ.get("CXX"), "g++", "clang++", "c++"):
        path = shutil.which(name) if name else None
        if path:
            return path
    return None


@cache
def compiler_version() -> str:
    """Return the first line of the compiler's --version, or a sentence if there is no compiler."""
    path = compiler()
    if path is None:
        return "no C++ compiler found: our side alone"
    finished = subprocess.run([path, "--version"], capture_output=True, text=True, check=True)
    return finished.stdout.splitlines()[0]


@cache
def _directory() -> tempfile.TemporaryDirectory[str]:
    """The directory of this process's programs."""
    return tempfile.TemporaryDirectory(prefix="exchange-benchmarks-")


@cache
def built(name: str, *flags: str) -> Path | None:
    """Build `reference/NAME.cpp`, and return the program; None if there is no compiler."""
    path = compiler()
    if path is None:
        return None
    program = Path(_directory().name) / name
    command = [path, *FLAGS, "-o", str(program), str(_SOURCES / f"{name}.cpp"), *flags]
    subprocess.run(command, check=True)
    return program


def libzmq() -> list[str]:
    """Return the flags that link the libzmq of pyzmq's wheel; if the wheel has none, the system's libzmq."""
    bundled = sorted((Path(zmq.__file__).parent.parent / "pyzmq.libs").glob("libzmq*.so*"))
    if not bundled:
        return ["-lzmq"]
    return [str(bundled[0]), f"-Wl,-rpath,{bundled[0].parent}"]
