"""Run simulations in tests, and read their results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from click.testing import CliRunner

from exchange_simulation.cli.main import main
from tests.exchange_command import FinishedCommand


def simulated(results: Path, *words: object) -> FinishedCommand:
    """Run `exchange simulate` in this process, with `--master none` unless `words` have another master."""
    command = ("simulate", "--json", "--results", results, "--master", "none", *words)
    finished = CliRunner().invoke(main, list(map(str, command)))
    return FinishedCommand(finished.exit_code, finished.stdout, finished.stderr)


def rows(folder: Path) -> list[dict[str, Any]]:
    """The rows of all instruments of a simulation."""
    return pq.read_table(folder / "instruments.parquet").to_pylist()


def events(folder: Path, table: str) -> pa.Table:
    """A simulation's table of events, sorted by instrument and sequence, without experiment and run."""
    rows = ds.dataset(folder / "market" / table, partitioning="hive").to_table()
    rows = rows.drop_columns(["experiment", "run"])
    return rows.sort_by([("instrument", "ascending"), ("sequence", "ascending")]).combine_chunks()


def result_of(record: dict[str, Any]) -> dict[str, Any]:
    """The fields of a record that depend on the settings alone, and not on partitions, master or machine."""
    return {name: record[name] for name in ("settings", "totals", "per_instrument", "checksums")}
