"""A batch's file read back in this process: no Spark job, since only a few columns of it are asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq


def read_columns(file: Path, *columns: str) -> Any:
    """A pyarrow table; a field of a struct is named STRUCT.FIELD, and the struct then holds no others."""
    with pq.ParquetFile(file) as parquet:
        return parquet.read(columns=list(columns))
