"""Local tables: each is one file with its final name, never a folder of parts, and never half of a file."""

from __future__ import annotations

import fcntl
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame

from spark.errors import TablesBusyError, TablesUnwritableError
from spark.tables.paths import check_text
from spark.tables.table_writer import TableWriter

PARTS = ".parts"
LOCK = ".lock"
ABANDONED_AFTER_S = 3600


def write_table(rows: pa.Table, file: Path) -> None:
    """Replace `file` by these rows; a reader sees the old table or the new one."""
    hidden = file.with_name(f".{file.name}.part")
    try:
        with TableWriter(hidden, rows.schema) as writer:
            writer.add(rows)
        hidden.replace(file)
    except BaseException:
        with suppress(OSError):
            hidden.unlink()
        raise


def write_by_spark(rows: DataFrame, file: Path) -> None:
    """Let Spark replace `file` by these rows; a reader sees the old table or the new one."""
    parts = Path(tempfile.mkdtemp(prefix=f".{file.stem}-", suffix=PARTS, dir=file.parent))
    try:
        # gzip is in Java itself; the other codecs unpack a native library first.
        rows.coalesce(1).write.mode("overwrite").parquet(f"file://{parts.resolve()}", compression="gzip")
        (part,) = parts.glob("part-*.parquet")
        part.replace(file)
    finally:
        shutil.rmtree(parts, ignore_errors=True)


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
            "make room or give write permission, then analyse the run again"
        ) from failure
    return folder


def _remove_abandoned(folder: Path) -> None:
    """Remove the files that a killed analysis left. A younger one may be at work at the same time."""
    for parts in folder.glob(f".*{PARTS}"):
        if time.time() - parts.stat().st_mtime > ABANDONED_AFTER_S:
            shutil.rmtree(parts, ignore_errors=True)


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
