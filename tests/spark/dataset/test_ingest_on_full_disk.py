"""A disk of 2 MB for the tables that fills up during an ingest: the tables stay, and an error says why.

ingest ──▶ a namespace of its own moves the tables to the disk and fills it ──▶ ingest --again ──▶ room ──▶ and again
     └────────────────── what pandas and DuckDB read, after each ────────────────────────┴────────────────────┘
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import duckdb
import pandas as pd
import pytest
from spark_runs import MadeUpRun

from tests.machine import PATIENCE_S
from tests.spark.dataset.conftest import SparkCommand

pytestmark = pytest.mark.xdist_group("second Spark session")

NAMESPACE = ["unshare", "--user", "--map-root-user", "--mount"]
STEPS = """
set -u
cp -r "$1/tables" "$1/before"
mount -t tmpfs -o size=2m none "$1/tables" || exit 77
cp -r "$1/before/." "$1/tables"
dd if=/dev/zero of="$1/tables/filler" bs=1024 2>/dev/null
"$0" -P -m exchange_simulation.cli spark ingest "$1" --again; code=$?
rm "$1/tables/filler"
cp -r "$1/tables" "$1/after"
exit $code
"""
NO_MOUNT = 77


def rows_of(tables: Path) -> dict[str, set[int]]:
    """Return for each kind the numbers of rows that two libraries read: one number if they agree."""
    rows = {}
    for kind in tables.iterdir():
        if kind.is_dir() and not kind.name.startswith("."):
            rows[kind.name] = {len(pd.read_parquet(kind)), rows_read_by_duckdb(kind)}
    return rows


def rows_read_by_duckdb(table: Path) -> int:
    ((count,),) = duckdb.sql(f"select count(*) from '{table}/**/*.parquet'").fetchall()
    return int(count)


@pytest.mark.jvm
@pytest.mark.skipif(sys.platform != "linux", reason="a disk of a test's own needs Linux's namespaces")
def test_a_disk_that_fills_during_an_ingest_leaves_tables_right(spark_command: SparkCommand, tmp_path: Path) -> None:
    results = tmp_path / "results"
    made_up = MadeUpRun(seconds=2, orders_per_s=100)
    made_up.write(results / "run")
    assert spark_command("ingest", results).exit_code == 0
    first = rows_of(results / "tables")
    assert first["traffic"] == {sum(record["kind"] == "traffic" for record in made_up.records)}
    words = [*NAMESPACE, "sh", "-c", STEPS, sys.executable, str(results)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    if done.returncode == NO_MOUNT or "unshare" in done.stderr:
        pytest.skip(f"this machine lets no test mount a disk: {done.stderr.splitlines()[-1]}")
    assert done.returncode != 0
    assert "the disk filled up" in done.stderr
    assert "Traceback" not in done.stderr
    assert rows_of(results / "after") == first
    shutil.rmtree(results / "tables")
    (results / "after").rename(results / "tables")
    assert spark_command("ingest", results, "--again").exit_code == 0
    assert rows_of(results / "tables") == first
