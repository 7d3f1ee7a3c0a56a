"""The live table: a row for each second, and the file a batch leaves of the rows that it changed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from exchange.records import COMPLETION
from spark.live.columns import read_columns
from spark.live.times import merged_figures
from spark.summary.columns import COUNTS, MEASURED, RATE
from spark.tables.files import PARTS

Row = dict[str, Any]
FIGURES = (RATE, *MEASURED)
SCHEMA = pa.schema(
    [
        ("batch_id", pa.int64()),
        ("second", pa.int32()),
        ("final", pa.bool_()),
        *((name, pa.int64() if name in COUNTS else pa.float64()) for name in FIGURES),
    ]
)


def times_of(seconds: Iterable[int], files: Iterable[Path]) -> dict[int, Row]:
    """Completion and lag of these seconds, from all the files that hold records of them."""
    wanted, payloads = set(seconds), defaultdict[tuple[int, str], list[Row]](list)
    for file in files:
        table = read_columns(file, "kind", COMPLETION)
        said = table.filter(pc.equal(table["kind"], COMPLETION))[COMPLETION]
        is_wanted = pc.is_in(pc.struct_field(said, "second"), pa.array(wanted, pa.int32()))
        for payload in said.filter(is_wanted).to_pylist():
            if not payload["last_order"]:
                payloads[payload["second"], payload["clock"]].append(payload)
    rows: dict[int, Row] = {second: {} for second in wanted}
    for (second, clock), of_clock in payloads.items():
        figures = {f"{clock}_{name}": value for name, value in merged_figures(of_clock).items()}
        rows[second] |= {name: value for name, value in figures.items() if name in FIGURES}
    return rows


def write_rows(file: Path, batch_id: int, rows: Iterable[Row]) -> None:
    """They appear whole, and in place of what a killed attempt of the same batch left."""
    hidden = file.with_name(f".{file.name}{PARTS}")
    pq.write_table(pa.Table.from_pylist([{**row, "batch_id": batch_id} for row in rows], SCHEMA), hidden)
    hidden.replace(file)


def live_rows(seconds: Path, before: int | None = None) -> dict[int, Row]:
    """By second, the row of the highest batch, of those below `before`."""
    rows: dict[int, Row] = {}
    for file in sorted(seconds.glob("[0-9]*.parquet")):
        for row in read_columns(file, *SCHEMA.names).to_pylist():
            if before is None or row["batch_id"] < before:
                rows[row["second"]] = {name: row[name] for name in ("second", "final", *FIGURES)}
    return dict(sorted(rows.items()))
