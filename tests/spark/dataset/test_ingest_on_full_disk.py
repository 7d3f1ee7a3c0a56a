"""A disk of 2 MB for the tables, full in the middle of an ingest: the tables stay, a sentence says why, room helps.

a namespace of its own mounts the disk ──▶ ingest ──▶ filled ──▶ ingest --again ──▶ room ──▶ ingest --again
                                           └──────── what pandas and DuckDB read, after each ────────┘
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from spark_runs import MadeUpRun

from tests.machine import PATIENCE_S

NAMESPACE = ["unshare", "--user", "--map-root-user", "--mount"]
STEPS = """
set -u
mount -t tmpfs -o size=2m none "$2/tables" || exit 77
ingest() { "$1" -m cli spark ingest "$2" $3 >&2; echo "$?"; }
ingest "$1" "$2" ""; "$1" "$0" "$2/tables"
dd if=/dev/zero of="$2/tables/filler" bs=1024 2>/dev/null
ingest "$1" "$2" --again; "$1" "$0" "$2/tables"
rm "$2/tables/filler"
ingest "$1" "$2" --again; "$1" "$0" "$2/tables"
"""
READERS = """
import duckdb, json, pandas, pathlib, sys
tables = pathlib.Path(sys.argv[1])
kinds = sorted(kind.name for kind in tables.iterdir() if kind.is_dir() and not kind.name.startswith("."))
rows = {kind: [len(pandas.read_parquet(tables / kind)),
               duckdb.sql(f"select count(*) from '{tables / kind}/**/*.parquet'").fetchall()[0][0]] for kind in kinds}
print(json.dumps(rows))
"""


@pytest.mark.jvm
@pytest.mark.skipif(sys.platform != "linux", reason="a disk of a test's own needs Linux's namespaces")
def test_a_disk_that_is_full_in_the_middle_of_an_ingest_leaves_the_tables_right(tmp_path: Path) -> None:
    results, readers = tmp_path / "results", tmp_path / "readers.py"
    made_up = MadeUpRun(seconds=2, orders_per_s=100)
    made_up.write(results / "run")
    (results / "tables").mkdir()
    readers.write_text(READERS)
    words = [*NAMESPACE, "sh", "-c", STEPS, str(readers), sys.executable, str(results)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=4 * PATIENCE_S, check=False)
    if done.returncode == 77 or "unshare" in done.stderr:
        pytest.skip(f"this machine lets no test mount a disk: {done.stderr.splitlines()[-1]}")
    lines = done.stdout.splitlines()
    assert len(lines) == 6, done.stdout + done.stderr
    assert (lines[0], lines[4]) == ("0", "0"), done.stderr
    assert lines[2] != "0"
    assert "the disk filled up" in done.stderr
    assert "Traceback" not in done.stderr
    first, full, again = map(json.loads, lines[1::2])
    assert first["traffic"] == 2 * [sum(record["kind"] == "traffic" for record in made_up.records)]
    assert first == full == again
