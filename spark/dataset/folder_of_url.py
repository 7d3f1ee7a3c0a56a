"""Returns the folder of a path or URL, as a session of Spark reaches it: a local one, Hadoop's, or a server's."""

from __future__ import annotations

from pyspark.sql import SparkSession

from spark.dataset.folder import DatasetFolder, LocalFolder, ServedFolder, TablesFolder, as_url, is_local
from spark.dataset.hadoop_folder import HadoopFolder
from spark.errors import DatasetUnreadableError
from spark.sessions.connect import ship_package
from spark.sessions.master import is_connect


def dataset_folder(spark: SparkSession, location: str) -> DatasetFolder:
    """Return the folder for a session of our own. DatasetUnreadableError if Spark cannot reach it."""
    url = as_url(location)
    return LocalFolder(url) if is_local(url) else HadoopFolder(spark, url)


def folder_to_read(spark: SparkSession, master: str, location: str) -> TablesFolder:
    """Return the folder for a session of this master. DatasetUnreadableError if Spark or its server cannot reach it."""
    return ServedFolder(spark, location) if is_connect(master) else dataset_folder(spark, location)


def folder_to_change(spark: SparkSession, master: str, location: str) -> DatasetFolder:
    """Return the folder for a session of this master, to write tables into it.

    A Spark Connect server writes files, and this process renames them, so both must have the folder on their disk. The
    server gets our packages, since its workers run our functions when they write.

    DatasetUnreadableError if they do not have the folder on their disk, or if Spark cannot reach it.
    """
    if not is_connect(master):
        return dataset_folder(spark, location)
    url = as_url(location)
    if not is_local(url):
        raise DatasetUnreadableError(
            f"{master} writes files and renames none, so their folder must be on a disk that this machine shares "
            f"with it, and {url} is not: give such a folder, or use exchange spark submit"
        )
    ServedFolder(spark, url)  # raises DatasetUnreadableError if the server does not see the folder
    ship_package(spark)
    return LocalFolder(url)
