"""The folder of the tables as a Spark Connect server sees it, which may run on another machine."""

from __future__ import annotations

import re

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from spark.dataset.folder import TablesFolder, as_url, without_scheme
from spark.errors import DatasetUnreadableError
from spark.tables.paths import escaped

PATH = "path"
"""The column of Spark's table of files that has their paths."""


class ServedFolder(TablesFolder):
    """A folder that a Spark Connect server sees. The server lists its files once; names of empty folders are missing.

    DatasetUnreadableError if the server does not see it.
    """

    def __init__(self, spark: SparkSession, url: str) -> None:
        root_url = as_url(url).rstrip("/")
        super().__init__(root_url, root_url)
        root = f"{without_scheme(self.url)}/"
        self._files = [without_scheme(path).removeprefix(root) for path in self._paths(spark)]

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
