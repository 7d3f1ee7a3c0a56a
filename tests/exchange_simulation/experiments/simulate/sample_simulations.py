"""Simulations for tests: small ones, and what they come to."""

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
    """`exchange simulate` in this process, without Spark unless it is asked for; its record."""
    given = ("simulate", "--json", "--results", results, "--master", "none", *words)
    done = CliRunner().invoke(main, list(map(str, given)))
    return FinishedCommand(done.exit_code, done.stdout, done.stderr)


def rows(folder: Path) -> list[dict[str, Any]]:
    return pq.read_table(folder / "instruments.parquet").to_pylist()


def events(folder: Path, table: str) -> pa.Table:
    """In the order of instruments, and of a book's answers within one; without the simulation's name."""
    found = ds.dataset(folder / "market" / table, partitioning="hive").to_table().drop_columns(["experiment", "run"])
    return found.sort_by([("instrument", "ascending"), ("sequence", "ascending")]).combine_chunks()


def same(first: dict[str, Any], second: dict[str, Any]) -> bool:
    """Whether two records tell of the same result, however it was come by."""
    return all(first[part] == second[part] for part in ("settings", "totals", "per_instrument", "checksums"))
