"""A folder on any of Hadoop's file systems: file:, hdfs:, s3a: and whatever else Spark was given jars for."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

from spark.errors import DatasetUnreadableError, root_cause


class DatasetFolder:
    """Names are relative to the folder, with / between their parts. DatasetUnreadableError if Spark cannot reach it."""

    def __init__(self, spark: SparkSession, url: str) -> None:
        self._jvm: Any = cast(Any, spark._jvm)  # pyspark has no types for it
        self.url = as_url(url)
        root = self._jvm.org.apache.hadoop.fs.Path(self.url)
        try:
            self._files: Any = root.getFileSystem(spark._jsc.hadoopConfiguration())
        except Py4JJavaError as error:
            raise DatasetUnreadableError(
                f"Spark cannot reach {url} ({root_cause(error)}): give a folder, or a file system whose jars it has"
            ) from error
        self._root: Any = self._files.makeQualified(root)
        self._root_path = str(self._root.toString())

    def path(self, name: str) -> str:
        """Return the full path as Spark's writers take it; its readers take names with brackets for patterns."""
        return f"{self._root_path}/{name}"

    def names(self, prefix: str = "") -> list[str]:
        """Return names directly in this folder that begin with `prefix`; none if the folder does not exist."""
        if not self._files.exists(self._root):
            return []
        names = [str(status.getPath().getName()) for status in self._files.listStatus(self._root)]
        return sorted(name for name in names if name.startswith(prefix))

    def folders(self, name: str) -> list[str]:
        """Return the names of the folders in the folder `name`; none if it does not exist."""
        path = self._path(name)
        if not self._files.exists(path):
            return []
        return sorted(str(found.getPath().getName()) for found in self._files.listStatus(path) if found.isDirectory())

    def files(self, name: str) -> list[str]:
        """Return every Parquet file anywhere below the folder `name`, by its name relative to this folder."""
        found, below = self._files.listFiles(self._path(name), True), []
        start = len(self._root_path) + 1
        while found.hasNext():
            path = found.next().getPath()
            if str(path.getName()).startswith("part-"):
                below.append(str(path.toString())[start:])
        return sorted(below)

    def read(self, name: str) -> str:
        stream = self._files.open(self._path(name))
        try:
            return str(self._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
        finally:
            stream.close()

    def write(self, name: str, content: str) -> None:
        """Write a file, which appears whole, by rename."""
        hidden = self._path(f".{name}.part")
        stream = self._files.create(hidden, True)
        try:
            stream.write(bytearray(content.encode()))
        finally:
            stream.close()
        if not self._files.rename(hidden, self._path(name)):
            raise OSError(f"{self.path(name)} cannot be written: another job was faster, or may not rename there")

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
