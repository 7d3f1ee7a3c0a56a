"""Executables that pretend to be Java."""

from __future__ import annotations

from pathlib import Path

import pytest


def fake_java(home: Path, says: str | None, release: str | None = None) -> Path:
    """A bin/java that states `says` on stderr (None: it fails), beside a release file, if there is to be one."""
    executable = home / "bin" / "java"
    executable.parent.mkdir(parents=True)
    executable.write_text("#!/bin/sh\nexit 1\n" if says is None else f"#!/bin/sh\necho '{says}' >&2\n")
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


def java_that(does: str, home: Path) -> dict[str, str]:
    """The environment of a Java that does this in place of starting Spark's JVM."""
    fake_java(home, JAVA_17).write_text(f"#!/bin/sh\n[ \"$1\" = -version ] && echo '{JAVA_17}' >&2 && exit\n{does}\n")
    return {"JAVA_HOME": str(home)}
