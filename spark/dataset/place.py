"""Files at a place that Hadoop's file systems reach: file:, hdfs:, s3a: and whatever else Spark was given jars for."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

from spark.errors import DatasetUnreadableError, root_cause


class Place:
    """A folder. Names are relative to it, with / between their parts."""

    def __init__(self, spark: SparkSession, url: str) -> None:
        self._jvm: Any = cast(Any, spark._jvm)  # as pyspark has no types for it
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
        """As Spark's writers take it; its readers take names with brackets for patterns."""
        return f"{self._root_path}/{name}"

    def names(self, prefix: str = "") -> list[str]:
        """Of the files and folders right here that begin so; none where there is no such folder."""
        if not self._files.exists(self._root):
            return []
        names = [str(status.getPath().getName()) for status in self._files.listStatus(self._root)]
        return sorted(name for name in names if name.startswith(prefix))

    def folders(self, name: str) -> list[str]:
        """Of the folders in the folder `name`."""
        at = self._at(name)
        if not self._files.exists(at):
            return []
        return sorted(str(found.getPath().getName()) for found in self._files.listStatus(at) if found.isDirectory())

    def files(self, name: str) -> list[str]:
        """Every Parquet file below the folder `name`, by its name from here."""
        found, below = self._files.listFiles(self._at(name), True), []
        start = len(self._root_path) + 1
        while found.hasNext():
            path = found.next().getPath()
            if str(path.getName()).startswith("part-"):
                below.append(str(path.toString())[start:])
        return sorted(below)

    def read(self, name: str) -> str:
        stream = self._files.open(self._at(name))
        try:
            return str(self._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
        finally:
            stream.close()

    def write(self, name: str, content: str) -> None:
        """The file appears whole, by rename."""
        hidden = self._at(f".{name}.part")
        stream = self._files.create(hidden, True)
        try:
            stream.write(bytearray(content.encode()))
        finally:
            stream.close()
        if not self._files.rename(hidden, self._at(name)):
            raise OSError(f"{self.path(name)} cannot be written: another job was faster, or may not rename there")

    def remove(self, name: str) -> None:
        """A file, or a folder and all in it; nothing where there is none."""
        self._files.delete(self._at(name), True)

    def unescaped(self, name: str) -> str:
        """What Spark made a folder's name of."""
        catalog = self._jvm.org.apache.spark.sql.catalyst.catalog.ExternalCatalogUtils
        return str(catalog.unescapePathName(name))

    def _at(self, name: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(self._root, name)


def as_url(place: str) -> str:
    """What has no scheme is a local folder."""
    return place if len(urlsplit(place).scheme) > 1 else f"file://{Path(place).resolve()}"


def local_uri(spark: SparkSession, folder: Path) -> str:
    """As Spark's `_metadata.file_path` has it."""
    jvm = cast(Any, spark._jvm)
    return str(jvm.org.apache.hadoop.fs.Path(f"file:{folder.resolve()}").toUri().toString())
