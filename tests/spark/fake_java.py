"""Executables that pretend to be Java."""

from __future__ import annotations

from pathlib import Path

import pytest

FAILS = None
"""The output of a fake Java that fails when it is started."""


def fake_java(home: Path, output: str | None, release: str | None = None) -> Path:
    """Make a bin/java that prints `output` on stderr, or FAILS; and a release file if `release` is given."""
    executable = home / "bin" / "java"
    executable.parent.mkdir(parents=True)
    if output is FAILS:
        script = "exit 1"
    else:
        script = f"echo '{output}' >&2"
    executable.write_text(f"#!/bin/sh\n{script}\n")
    executable.chmod(0o755)
    if release is not None:
        (home / "release").write_text(f'IMPLEMENTOR="Nobody"\nJAVA_VERSION="{release}"\n')
    return executable


JAVA_8 = 'java version "1.8.0_292"'
JAVA_11 = 'openjdk version "11.0.2" 2019-01-15'
JAVA_17 = 'openjdk version "17.0.15" 2025-04-15'
JAVA_26 = 'openjdk version "26-ea" 2026-03-17'


leaves_its_pipe_open = pytest.mark.filterwarnings(
    "ignore:Exception ignored in.*FileIO:pytest.PytestUnraisableExceptionWarning"
)
"""PySpark leaves the pipe to a JVM that did not start to the garbage collector."""


def java_that(script: str, home: Path) -> dict[str, str]:
    """Return the environment of a Java that runs this shell script in place of starting Spark's JVM."""
    executable = fake_java(home, JAVA_17)
    executable.write_text(f"#!/bin/sh\n[ \"$1\" = -version ] && echo '{JAVA_17}' >&2 && exit\n{script}\n")
    return {"JAVA_HOME": str(home)}
