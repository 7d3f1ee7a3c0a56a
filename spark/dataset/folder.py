"""A folder on any of Hadoop's file systems: file:, hdfs:, s3a: and whatever else Spark was given jars for."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

from spark.errors import DatasetUnreadableError, root_cause
from spark.tables.files import escaped


class DatasetFolder:
    """Names are relative to the folder, with / between their parts. DatasetUnreadableError if Spark cannot reach it."""

    def __init__(self, spark: SparkSession, url: str) -> None:
        self._jvm: Any = cast(Any, spark._jvm)  # pyspark has no types for it
        self.url = as_url(url)
        self._conf: Any = spark._jsc.hadoopConfiguration()
        root = self._jvm.org.apache.hadoop.fs.Path(self.url)
        try:
            self._files: Any = root.getFileSystem(self._conf)
        except Py4JJavaError as error:
            raise DatasetUnreadableError(
                f"Spark cannot reach {url} ({root_cause(error)}): give a folder, or a file system whose jars it has"
            ) from error
        self._root: Any = self._files.makeQualified(root)
        self._root_path = str(self._root.toString())

    def path(self, name: str) -> str:
        """Return the full path as Spark's writers take it; its readers take names with brackets for patterns."""
        return f"{self._root_path}/{name}"

    @property
    def local(self) -> Path | None:
        """The folder, if it is on this machine."""
        return Path(self._root_path.removeprefix("file:")) if self._root_path.startswith("file:/") else None

    def pattern(self, name: str) -> str:
        """Return a path as Spark's readers take it."""
        return escaped(self.path(name))

    def names(self) -> list[str]:
        """Return all names directly in this folder, sorted; none if it does not exist."""
        if not self._files.exists(self._root):
            return []
        return sorted(str(status.getPath().getName()) for status in self._files.listStatus(self._root))

    def files(self, name: str) -> list[str]:
        """Return every part anywhere below the folder `name`, relative to this folder; none if it does not exist."""
        if not self._files.exists(self._path(name)):
            return []
        found, below = self._files.listFiles(self._path(name), True), []
        start = len(self._root_path) + 1
        while found.hasNext():
            path = found.next().getPath()
            if str(path.getName()).startswith("part-"):
                below.append(str(path.toString())[start:])
        return sorted(below)

    def size(self, name: str) -> int:
        """Return the bytes of a file, or of all files in a folder; 0 if it does not exist."""
        path = self._path(name)
        return int(self._files.getContentSummary(path).getLength()) if self._files.exists(path) else 0

    def touch(self, name: str) -> None:
        """Make an empty file."""
        self._files.create(self._path(name), True).close()

    def rename(self, old: str, new: str) -> None:
        """Rename a file or folder; a file of the new name is replaced at once."""
        if self.local is not None:
            target = self.local / new
            target.parent.mkdir(parents=True, exist_ok=True)
            (self.local / old).replace(target)
            return
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
        """Remove a file, or a folder and all in it, if it is there."""
        self._files.delete(self._path(name), True)

    def unescaped(self, name: str) -> str:
        """Undo the escapes in a folder's name that Spark made of a value."""
        catalog = self._jvm.org.apache.spark.sql.catalyst.catalog.ExternalCatalogUtils
        return str(catalog.unescapePathName(name))

    def _path(self, name: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(self._root, name)


def as_url(location: str) -> str:
    """Turn a path of this machine into a URL; a URL stays as it is."""
    return location if len(urlsplit(location).scheme) > 1 else f"file://{Path(location).resolve()}"


def local_uri(spark: SparkSession, folder: Path) -> str:
    """Return a local folder as Spark's `_metadata.file_path` writes it."""
    jvm = cast(Any, spark._jvm)
    return str(jvm.org.apache.hadoop.fs.Path(f"file:{folder.resolve()}").toUri().toString())
