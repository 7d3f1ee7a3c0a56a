"""simulation.json: what was asked, what came out, how fast, and on what; written last, so it marks a finished one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from exchange.checksum import NAME
from experiments.simulate.ran import Ran
from experiments.simulate.table import SUMS, TEXTS

FILE = "simulation.json"
SCHEMA = 1
SPREAD = ("orders", "trades", "volume_traded")
"""Told as the least, the median and the most of an instrument."""


def totals(rows: pa.Table) -> dict[str, int]:
    return {name: pc.sum(rows[name]).as_py() for name in SUMS}


def spread(rows: pa.Table) -> dict[str, dict[str, float]]:
    return {name: _spread(rows[name]) for name in SPREAD}


def _spread(column: pa.ChunkedArray) -> dict[str, float]:
    ends = pc.min_max(column).as_py()
    return {"min": ends["min"], "median": pc.quantile(column, 0.5)[0].as_py(), "max": ends["max"]}


def checksums(rows: pa.Table) -> dict[str, str]:
    """The sums of all instruments' checksums modulo 2^64: the same in whatever order they are added."""
    sums = {name: sum(int(text, 16) for text in rows[name].to_pylist()) % 2**64 for name in TEXTS}
    return {
        "hash": f"sum of {NAME}",
        **{name.removesuffix(f"_{NAME}"): f"{total:016x}" for name, total in sums.items()},
    }


def rates(ran: Ran, orders: int) -> dict[str, float]:
    return {
        "start_up_s": ran.start_up_s,
        "matching_s": ran.matching_s,
        "orders_per_s": orders / ran.matching_s,
    }


def trade_files(folder: Path) -> dict[str, Any]:
    """Those that appeared, which are whole, with their rows."""
    files = sorted(folder.glob("part-*.parquet"))
    rows = [pq.read_metadata(file).num_rows for file in files]
    return {
        "folder": folder.name,
        "files": len(files),
        "rows": sum(rows),
        "bytes": sum(f.stat().st_size for f in files),
    }
