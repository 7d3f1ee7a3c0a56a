"""Local tables: each is one file with its final name, never a folder of parts, and never half of a file.

Spark takes some names for patterns: `spark_path` gives it a path that is none.
"""

from __future__ import annotations

import fcntl
import re
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame

from spark.errors import DatasetUnreadableError, TablesBusyError, TablesUnwritableError
from spark.tables.table_writer import TableWriter

UNDER_WAY = ".under-way"
LOCK = ".lock"
ABANDONED_AFTER_S = 3600


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


def write_table(rows: pa.Table, file: Path) -> None:
    """Replace `file` by these rows; a reader sees the old table or the new one."""
    with _hidden_folder(file) as hidden:
        under_way = hidden / file.name
        with TableWriter(under_way, rows.schema) as writer:
            writer.add(rows)
        under_way.replace(file)


def write_by_spark(rows: DataFrame, file: Path) -> None:
    """Let Spark replace `file` by these rows; a reader sees the old table or the new one."""
    with _hidden_folder(file) as hidden:
        # gzip is in Java itself; the other codecs unpack a native library first.
        rows.coalesce(1).write.mode("overwrite").parquet(f"file://{hidden.resolve()}", compression="gzip")
        (part,) = hidden.glob("part-*.parquet")
        part.replace(file)


@contextmanager
def _hidden_folder(file: Path) -> Iterator[Path]:
    """Make a hidden folder beside `file` for one writer of it, and remove it at the block's end."""
    folder = Path(tempfile.mkdtemp(prefix=f".{file.stem}-", suffix=UNDER_WAY, dir=file.parent))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def tables_folder(run_folder: Path) -> Path:
    """Make the folder if it is missing, and prove that it takes files, before Spark starts working for nothing."""
    folder = run_folder / "tables"
    check_text(folder.absolute())
    try:
        folder.mkdir(exist_ok=True)
        _remove_abandoned(folder)
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(bytes(4096))
    except OSError as failure:
        raise TablesUnwritableError(
            f"cannot write tables into {folder} ({failure.strerror}): "
            f"make room or give write permission, then make them with exchange report {run_folder} --spark"
        ) from failure
    return folder


def _remove_abandoned(folder: Path) -> None:
    """Remove the files that a killed analysis left. A younger one may be at work, and remove its own files."""
    for hidden in folder.glob(f".*{UNDER_WAY}"):
        with suppress(FileNotFoundError):
            if time.time() - hidden.stat().st_mtime > ABANDONED_AFTER_S:
                shutil.rmtree(hidden, ignore_errors=True)


@contextmanager
def locked(folder: Path, busy: str) -> Iterator[None]:
    """Lock a local folder for one writer; the system unlocks it when this process ends, even by a kill.

    TablesBusyError, with the sentence `busy`, if another process has locked it.
    """
    with (folder / LOCK).open("wb") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise TablesBusyError(busy) from error
        yield


def read_columns(file: Path, *columns: str) -> pa.Table:
    """Read columns of a local file without Spark. STRUCT.FIELD gives the struct with that field only."""
    with pq.ParquetFile(file) as parquet:
        return parquet.read(columns=list(columns))


def read_whole(file: Path) -> pa.Table:
    """Read all columns of a local file without Spark."""
    with pq.ParquetFile(file) as parquet:
        return parquet.read()
