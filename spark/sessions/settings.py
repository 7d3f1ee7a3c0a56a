"""Spark's settings: ours, those of a user's spark-defaults.conf in their place, and those of --conf over both."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from spark.sessions.master import is_this_machine

SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    # With it, every column expression costs three calls into the JVM, to note the line that it was written in.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    # A batch of 10,000 long rows would take some 50 MB, for which buffers grow and are copied again and again.
    "spark.sql.execution.arrow.maxBytesPerBatch": "4m",
    # Spark's own form of a time, INT96, is one that others read as nanoseconds, or not at all.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # A table is one file and needs no marker beside it; version 2 saves a rename, and we rename ourselves.
    "spark.hadoop.mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
    "spark.hadoop.mapreduce.fileoutputcommitter.algorithm.version": "2",
    # Hadoop starts a program for each permission and link of a local file. Without its checksum files, and with the
    # plainer of the two ways to write a checkpoint, a streamed batch starts 9 programs in place of 37.
    "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
}
"""The settings of every session."""
SETTINGS_OF_THIS_MACHINE = {
    # A run has few records: more partitions, or plans revised half-way, only add jobs.
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
    "spark.sql.adaptive.enabled": "false",
    # The driver lists some hundred files at once. Above 1000 Spark starts tasks, but not one for each file.
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "1000",
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "4",
}
"""The settings of sessions on `local*`: a cluster has its own, or Spark's."""
DRIVER_OPTIONS = "spark.driver.extraJavaOptions"
PYTHON_FILES = "spark.submit.pyFiles"
PLUGINS = "spark.plugins"
NEEDED_WITH_OTHERS = {DRIVER_OPTIONS: " ", PYTHON_FILES: ",", PLUGINS: ","}
"""Settings that a session needs as we give them, and that have room for more; what stands between ours and the rest."""
DEFAULTS = "spark-defaults.conf"
NAME_AND_VALUE = re.compile(r"\s*([^\s#!=:]+)\s*[\s=:]\s*\S")
"""A line of DEFAULTS that sets something; its first group is the name."""


def settings_for(master: str) -> dict[str, str]:
    """Return our settings, without those that the user's spark-defaults.conf has."""
    our_settings = dict(SETTINGS)
    if is_this_machine(master):
        our_settings |= SETTINGS_OF_THIS_MACHINE
    names_of_user = names_in(defaults_folder())
    return {name: value for name, value in our_settings.items() if name not in names_of_user}


def with_overrides(settings: Mapping[str, str], given: Mapping[str, str]) -> dict[str, str]:
    """Return the settings, in which a given one replaces ours; one of NEEDED_WITH_OTHERS adds to ours."""
    merged = {**settings, **given}
    for name, between in NEEDED_WITH_OTHERS.items():
        if settings.get(name) and name in given:
            merged[name] = f"{settings[name]}{between}{given[name]}" if given[name] else settings[name]
    return merged


def defaults_folder() -> Path | None:
    """Return the folder of the user's own configuration, as Spark finds it; we give Spark another SPARK_HOME."""
    folder = os.environ.get("SPARK_CONF_DIR")
    if folder:
        return Path(folder)
    home = os.environ.get("SPARK_HOME")
    return Path(home) / "conf" if home else None


def names_in(folder: Path | None) -> set[str]:
    """Return the names that the folder's spark-defaults.conf sets; none if there is no such file."""
    if folder is None:
        return set()
    try:
        lines = (folder / DEFAULTS).read_text(errors="replace").splitlines()
    except OSError:
        return set()
    names = set()
    for line in lines:
        setting = NAME_AND_VALUE.match(line)
        if setting is not None:
            names.add(setting[1])
    return names
