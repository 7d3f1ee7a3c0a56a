"""A table is one Parquet file with its final name, never a folder of parts, and never half of one."""

from __future__ import annotations

import re
import shutil
import tempfile
import time
from pathlib import Path

from pyspark.sql import DataFrame

from spark.errors import TablesUnwritableError

PARTS = ".parts"
ABANDONED_AFTER_S = 3600


def spark_path(path: Path) -> str:
    """Of a local file or folder, for Spark's readers."""
    return escaped(f"file://{path.resolve()}")


def escaped(path: str) -> str:
    """For Spark's readers, which take a name with brackets in it for a pattern."""
    return re.sub(r"([\\*?{}\[\]])", r"\\\1", path)


def write_table(rows: DataFrame, file: Path) -> None:
    """Replace `file` by these rows; a reader sees the old table or the new one."""
    parts = Path(tempfile.mkdtemp(prefix=f".{file.stem}-", suffix=PARTS, dir=file.parent))
    try:
        # gzip is in Java itself; the other codecs unpack a native library first.
        rows.coalesce(1).write.mode("overwrite").parquet(f"file://{parts.resolve()}", compression="gzip")
        (part,) = parts.glob("part-*.parquet")
        part.replace(file)
    finally:
        shutil.rmtree(parts, ignore_errors=True)


def tables_folder(run_folder: Path) -> Path:
    """Made where it is missing, and proved to take files, before Spark starts working for nothing."""
    folder = run_folder / "tables"
    try:
        folder.mkdir(exist_ok=True)
        _sweep(folder)
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(bytes(4096))
    except OSError as failure:
        raise TablesUnwritableError(
            f"cannot write tables into {folder} ({failure.strerror}): "
            "make room or give write permission, then analyse the run again"
        ) from failure
    return folder


def _sweep(folder: Path) -> None:
    """Remove what an analysis left that was killed; a younger one may be at work beside us."""
    for parts in folder.glob(f".*{PARTS}"):
        if time.time() - parts.stat().st_mtime > ABANDONED_AFTER_S:
            shutil.rmtree(parts, ignore_errors=True)
