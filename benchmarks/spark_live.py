"""Measures how late the live table is: from a spool file's rename to the rename of the table with its seconds' rows.

    run --live-spark ─▶ gateway ══zeromq══ engine, reporter ─▶ spool/N.jsonl ─▶ query ─▶ tables/live, Spark's mark

Both times are from the file system, since a rename changes a file's ctime; Spark renames its mark of a batch after the
table. Its checkpoint has the batch of each file.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.comparison import EXCHANGE, BenchmarkRow, Limit

SECONDS = 20
FEW = 3
"""The largest number of repeats; each has one latency a second."""
LONGEST_RUN_S = 180.0


def rows(repeats: int) -> Iterator[BenchmarkRow]:
    """Measure the median and the slowest latency over the spool files of a few runs."""
    latencies_of_runs_s = [latencies_s(run_folder) for run_folder in runs(min(repeats, FEW))]
    medians_s = [sorted(latencies)[len(latencies) // 2] for latencies in latencies_of_runs_s]
    slowest_s = [max(latencies) for latencies in latencies_of_runs_s]
    yield Limit(title="spool file to live table, median", unit="s", ours=medians_s, required=1, hoped_for=0.5)
    yield Limit(title="spool file to live table, slowest", unit="s", ours=slowest_s)


def runs(repeats: int) -> Iterator[Path]:
    """Make runs; yields the folder of each run, which is removed when the next run begins."""
    words = ["run", "--live-spark", "--no-spark", "--no-page", "--rate", "8000", "--duration", str(SECONDS)]
    for _ in range(repeats):
        with tempfile.TemporaryDirectory(prefix="exchange-runs-") as results:
            command = [*EXCHANGE, *words, "--results", results, "--name", "run"]
            subprocess.run(command, capture_output=True, timeout=LONGEST_RUN_S, check=True)
            yield Path(results) / "run"


def latencies_s(run_folder: Path) -> list[float]:
    """Return the latency of each spool file of a run. Spark's log names some files again when it is compacted."""
    batch_by_spool_file: dict[str, int] = {}
    for log_file in (run_folder / "live" / "checkpoint" / "sources" / "0").glob("[0-9]*"):
        _version, *lines = log_file.read_text().splitlines()
        for line in lines:
            entry = json.loads(line)
            batch_by_spool_file[Path(entry["path"]).name] = entry["batchId"]
    latencies = []
    for name, batch in batch_by_spool_file.items():
        spooled_ns = (run_folder / "spool" / name).stat().st_ctime_ns
        shown_ns = (run_folder / "live" / "checkpoint" / "commits" / str(batch)).stat().st_ctime_ns
        latencies.append((shown_ns - spooled_ns) / 1e9)
    return latencies
