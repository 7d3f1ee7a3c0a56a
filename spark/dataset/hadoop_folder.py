"""The folder of the tables on one of Hadoop's file systems, which Java reads and writes."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

from spark.dataset.folder import DatasetFolder
from spark.errors import DatasetUnreadableError, root_cause
from spark.sessions.folders import scratch_folder

SCHEMES_WITH_RENAME = ("file", "hdfs", "viewfs", "webhdfs", "swebhdfs")
"""The file systems in which a rename happens at once, and replaces a file. Object stores copy file by file."""


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
