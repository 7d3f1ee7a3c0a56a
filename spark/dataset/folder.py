"""The folder of the tables: what can be done in it, on this machine, and as a Spark Connect server sees it."""

from __future__ import annotations

import re
import shutil
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from spark.errors import DatasetUnreadableError
from spark.tables.files import check_text, escaped

PATH = "path"
"""The column of Spark's table of files that has their paths."""


class TablesFolder(ABC):
    """A folder of tables to read. Names are relative to the folder, with / between folders."""

    local: Path | None = None
    """The folder, if it is on this machine, and this process may read and change it."""

    def __init__(self, url: str, path: str) -> None:
        self.url = url
        self._root_path = path

    def path(self, name: str) -> str:
        """Return the full path as Spark's writers take it; its readers take names with brackets for patterns."""
        return f"{self._root_path}/{name}"

    def pattern(self, name: str) -> str:
        """Return a path as Spark's readers take it."""
        return escaped(self.path(name))

    @abstractmethod
    def names(self) -> list[str]:
        """Return all names directly in this folder, sorted; none if it does not exist."""

    @abstractmethod
    def files(self, name: str) -> list[str]:
        """Return every file part-* below the folder `name`, relative to this folder; none if that does not exist."""


class DatasetFolder(TablesFolder):
    """A folder of tables that can be changed."""

    renames_at_once = True
    """Whether a rename happens at once, and replaces a file at once."""

    def rows(self, file: str) -> list[dict[str, Any]]:
        """Read a small file in this process: a job of Spark's takes seconds in a JVM that is new."""
        with self.readable(file) as path, pq.ParquetFile(path) as parquet:
            rows: list[dict[str, Any]] = parquet.read().to_pylist(maps_as_pydicts="strict")
        return rows

    @abstractmethod
    def readable(self, file: str) -> AbstractContextManager[Path]:
        """Return a context with a path of this machine where the file can be read."""

    @abstractmethod
    def writable(self, file: str) -> AbstractContextManager[Path]:
        """Return a context with a path of this machine; what is written there is the file when the context ends."""

    @abstractmethod
    def size(self, name: str) -> int:
        """Return the bytes of a file, or of all files in a folder; 0 if it does not exist."""

    @abstractmethod
    def touch(self, name: str) -> None:
        """Make an empty file."""

    @abstractmethod
    def rename(self, old: str, new: str) -> None:
        """Rename a file or folder; a file of the new name is replaced at once."""

    @abstractmethod
    def remove(self, name: str) -> None:
        """Remove a file, or a folder and all in it, if it is there."""


class LocalFolder(DatasetFolder):
    """A folder on this machine, which is changed without Java."""

    def __init__(self, url: str) -> None:
        self.local: Path = Path(_without_scheme(url)).resolve()
        check_text(self.local)
        super().__init__(url, f"file:{self.local}")

    def names(self) -> list[str]:
        return sorted(path.name for path in self.local.iterdir()) if self.local.exists() else []

    def files(self, name: str) -> list[str]:
        below = (self.local / name).rglob("part-*")
        return sorted(path.relative_to(self.local).as_posix() for path in below if path.is_file())

    @contextmanager
    def readable(self, file: str) -> Iterator[Path]:
        yield self.local / file

    @contextmanager
    def writable(self, file: str) -> Iterator[Path]:
        path = self.local / file
        path.parent.mkdir(parents=True, exist_ok=True)
        yield path

    def size(self, name: str) -> int:
        path = self.local / name
        return sum(file.stat().st_size for file in (path, *path.rglob("*")) if file.is_file())

    def touch(self, name: str) -> None:
        (self.local / name).parent.mkdir(parents=True, exist_ok=True)
        (self.local / name).touch()

    def rename(self, old: str, new: str) -> None:
        target = self.local / new
        target.parent.mkdir(parents=True, exist_ok=True)
        (self.local / old).replace(target)

    def remove(self, name: str) -> None:
        path = self.local / name
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


class ServedFolder(TablesFolder):
    """A folder that a Spark Connect server sees. The server lists its files once; names of empty folders are missing.

    DatasetUnreadableError if the server does not see it.
    """

    def __init__(self, spark: SparkSession, url: str) -> None:
        root_url = as_url(url).rstrip("/")
        super().__init__(root_url, root_url)
        root = f"{_without_scheme(self.url)}/"
        self._files = [_without_scheme(path).removeprefix(root) for path in self._paths(spark)]

    def names(self) -> list[str]:
        return sorted({file.split("/")[0] for file in self._files})

    def files(self, name: str) -> list[str]:
        return sorted(file for file in self._files if re.match(rf"{re.escape(name)}/(.*/)?part-", file))

    def _paths(self, spark: SparkSession) -> list[str]:
        """Return the paths of all files, and read none; Spark leaves out names that begin with a dot."""
        reader = spark.read.format("binaryFile").option("recursiveFileLookup", True)
        try:
            files = reader.load(escaped(self.url))
            paths: list[str] = files.select(PATH).toArrow()[PATH].to_pylist()
            return paths
        except AnalysisException as error:
            if error.getCondition() != "PATH_NOT_FOUND":
                raise
            raise DatasetUnreadableError(
                f"the Spark Connect server sees no folder {self.url}: "
                "give tables that it reaches, on its own disk, a shared one, or another file system"
            ) from error


def as_url(location: str) -> str:
    """Turn a path of this machine into a URL; a URL stays as it is."""
    return location if is_url(location) else f"file://{Path(location).resolve()}"


def is_url(location: str) -> bool:
    """Return whether it is a URL of a file system. `my:tables` is a path, as `C:/tables` is on Windows."""
    return re.match(r"[A-Za-z][A-Za-z0-9+.-]+:/", location) is not None


def _without_scheme(url: str) -> str:
    """Return the path alone; Spark writes file:/a where we write file:///a."""
    return re.sub(r"^[\w+.-]+:(//[^/]*)?", "", url)


def is_local(url: str) -> bool:
    """True if the folder is on this machine."""
    return url.startswith("file:/")
