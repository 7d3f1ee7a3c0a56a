"""Names of files and folders: how Spark takes a path, and how a table of many runs names its files.

A table has a folder for each experiment, which Hive and Spark call a partition: TABLE/experiment=E/part-N.parquet.
"""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote

from spark.errors import DatasetUnreadableError

RESERVED = re.compile(r"""[\x00-\x1f"#%'*/:=?\\\x7f{\[\]^]""")
"""The characters that Hive and Spark escape in the name of a partition's folder."""
PART_FILE = re.compile(r"[^/]+/experiment=(?P<experiment>[^/]*)/part-(?P<part>[0-9]+)\.parquet")


def spark_path(path: Path) -> str:
    """Return a local file or folder as Spark's readers take it. DatasetUnreadableError if it is no UTF-8."""
    resolved = path.resolve()
    check_text(resolved)
    return escaped(f"file://{resolved}")


def check_text(path: Path) -> None:
    """DatasetUnreadableError if a path has bytes that are no UTF-8: Java has no such text."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        raise DatasetUnreadableError(f"Spark takes UTF-8 only, and {path} is none: give another folder") from None


def escaped(path: str) -> str:
    """Escape a path for Spark's readers, which take a name with brackets in it for a pattern."""
    return re.sub(r"([\\*?{}\[\]])", r"\\\1", path)


def experiment_folder(experiment: str) -> str:
    """Return experiment=E, with reserved characters escaped."""
    name = RESERVED.sub(lambda match: f"%{ord(match[0]):02X}", experiment)
    return f"experiment={name}"


def part_file(table: str, experiment: str, part: int) -> str:
    """Return the file of a part of an experiment in a table."""
    return f"{table}/{experiment_folder(experiment)}/part-{part}.parquet"


def experiment_and_part(file: str) -> tuple[str, int]:
    """Return the experiment and the number in a name that `part_file` made. DatasetUnreadableError for another name."""
    match = PART_FILE.fullmatch(file)
    if match is None:
        raise DatasetUnreadableError(
            f"{file} among the tables is none of their files, which are called TABLE/experiment=E/part-N.parquet: "
            "move it away"
        )
    return unquote(match["experiment"]), int(match["part"])
