"""Builds C++ references: once a process, in a directory that is removed with it."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

FLAGS = ("-O3", "-march=native", "-std=c++17")
_SOURCES = Path(__file__).parent / "reference"


@cache
def compiler() -> str | None:
    """The C++ compiler: $CXX, or the first that is found."""
    names = (os.environ.get("CXX"), "g++", "clang++", "c++")
    return next((found for name in names if name and (found := shutil.which(name))), None)


@cache
def compiler_version() -> str:
    """The first line of the compiler's --version."""
    if (found := compiler()) is None:
        return "no C++ compiler found: our side alone"
    return subprocess.run([found, "--version"], capture_output=True, text=True, check=True).stdout.splitlines()[0]


@cache
def _directory() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="exchange-benchmarks-")


@cache
def built(name: str, *flags: str) -> Path | None:
    """The program of `reference/NAME.cpp`; None where there is no compiler."""
    if (found := compiler()) is None:
        return None
    program = Path(_directory().name) / name
    command = [found, *FLAGS, "-o", str(program), str(_SOURCES / f"{name}.cpp"), *flags]
    subprocess.run(command, check=True)
    return program
