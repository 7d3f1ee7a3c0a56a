"""The folder of the tables: on this machine, on a file system of Hadoop's, or as a Spark Connect server sees it."""

from __future__ import annotations

import re
import shutil
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, cast

import pyarrow.parquet as pq
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from spark.errors import DatasetUnreadableError, root_cause
from spark.sessions.connect import ship_package
from spark.sessions.folders import scratch_folder
from spark.tables.paths import check_text, escaped

SCHEMES_WITH_RENAME = ("file", "hdfs", "viewfs", "webhdfs", "swebhdfs")
"""The file systems in which a rename happens at once, and replaces a file. Object stores copy file by file."""


PATH = "path"
"""The column of Spark's files with their paths."""


class TablesFolder(ABC):
    """A folder of tables to read. Names are relative to the folder, with / between their parts."""

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
        """Return every part anywhere below the folder `name`, relative to this folder; none if it does not exist."""


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


class HadoopFolder(DatasetFolder):
    """A folder on any of Hadoop's file systems: hdfs:, s3a: and whatever else Spark was given jars for.

    DatasetUnreadableError if Spark cannot reach it.
    """

    def __init__(self, spark: SparkSession, url: str) -> None:
        self._jvm: Any = cast(Any, spark._jvm)  # pyspark has no types for it
        self._conf: Any = spark._jsc.hadoopConfiguration()
        root = self._jvm.org.apache.hadoop.fs.Path(url)
        try:
            self._files: Any = root.getFileSystem(self._conf)
        except Py4JJavaError as error:
            raise DatasetUnreadableError(
                f"Spark cannot reach {url} ({root_cause(error)}): give a folder, or a file system whose jars it has"
            ) from error
        self._root: Any = self._files.makeQualified(root)
        self.renames_at_once = url.partition(":")[0] in SCHEMES_WITH_RENAME
        super().__init__(url, str(self._root.toString()).rstrip("/"))  # the path of a file system's root ends with /

    def names(self) -> list[str]:
        if not self._files.exists(self._root):
            return []
        return sorted(str(status.getPath().getName()) for status in self._files.listStatus(self._root))

    def files(self, name: str) -> list[str]:
        if not self._files.exists(self._path(name)):
            return []
        statuses = self._files.listFiles(self._path(name), True)
        files = []
        while statuses.hasNext():
            path = statuses.next().getPath()
            if str(path.getName()).startswith("part-"):
                files.append(str(path.toString()).removeprefix(f"{self._root_path}/"))
        return sorted(files)

    @contextmanager
    def readable(self, file: str) -> Iterator[Path]:
        with self._scratch_file() as path:
            self._copier.copy(self._files, self._path(file), self._jvm.java.io.File(str(path)), False, self._conf)
            yield path

    @contextmanager
    def writable(self, file: str) -> Iterator[Path]:
        with self._scratch_file() as path:
            yield path
            self._copier.copy(self._jvm.java.io.File(str(path)), self._files, self._path(file), False, self._conf)

    def size(self, name: str) -> int:
        path = self._path(name)
        if not self._files.exists(path):
            return 0
        return int(self._files.getContentSummary(path).getLength())

    def touch(self, name: str) -> None:
        self._files.create(self._path(name), True).close()

    def rename(self, old: str, new: str) -> None:
        self._files.mkdirs(self._path(new).getParent())
        hadoop = self._jvm.org.apache.hadoop.fs
        options = self._jvm.java.lang.reflect.Array.newInstance(
            self._jvm.java.lang.Class.forName("org.apache.hadoop.fs.Options$Rename"), 1
        )
        options[0] = hadoop.Options.Rename.OVERWRITE
        hadoop.FileContext.getFileContext(self._root.toUri(), self._conf).rename(
            self._path(old), self._path(new), options
        )

    def remove(self, name: str) -> None:
        self._files.delete(self._path(name), True)

    @contextmanager
    def _scratch_file(self) -> Iterator[Path]:
        with tempfile.TemporaryDirectory(prefix="exchange-table-", dir=scratch_folder()) as folder:
            yield Path(folder) / "part.parquet"

    @property
    def _copier(self) -> Any:
        return self._jvm.org.apache.hadoop.fs.FileUtil

    def _path(self, name: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(self._root, name)


def dataset_folder(spark: SparkSession, location: str) -> DatasetFolder:
    """Return the folder at a path of this machine or a URL. DatasetUnreadableError if Spark cannot reach it."""
    url = as_url(location)
    return LocalFolder(url) if is_local(url) else HadoopFolder(spark, url)


def served_to_change(spark: SparkSession, server: str, location: str) -> DatasetFolder:
    """Return a folder whose files a Spark Connect server writes, and this process renames. DatasetUnreadableError."""
    url = as_url(location)
    if not is_local(url):
        raise DatasetUnreadableError(
            f"{server} writes files and renames none, so their folder must be on a disk that this machine shares "
            f"with it, and {url} is not: give such a folder, or use exchange spark submit"
        )
    ServedFolder(spark, url)  # raises DatasetUnreadableError if the server does not see the folder
    ship_package(spark)
    return LocalFolder(url)


def is_local(url: str) -> bool:
    """True if the folder is on this machine."""
    return url.startswith("file:/")


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
