"""How long `exchange spark ingest` takes for 100 and for 1,000 runs.

The runs are copies of one run of 8,000 orders, each in its own folder of one trial.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.comparison import EXCHANGE, BenchmarkRow, Limit

RUN = ("--rate", "8000", "--orders", "8000", "--no-spark", "--no-page", "--name", "first")
TARGETS_S = {100: (12.0, 8.0), 1000: (25.0, 20.0)}
"""Required and hoped-for seconds, by the number of runs."""
FEW = 3
"""The largest number of repeats, since each takes long."""


def rows(repeats: int) -> Iterator[BenchmarkRow]:
    """Measure an ingest of each number of runs."""
    with tempfile.TemporaryDirectory(prefix="exchange-runs-") as name:
        folder = Path(name)
        subprocess.run([*EXCHANGE, "run", *RUN, "--results", name], check=True, capture_output=True)
        for runs, (required_s, hoped_for_s) in TARGETS_S.items():
            results = _copy_run(folder / "first", folder / str(runs), runs)
            took_s = [_ingest_s(results) for _ in range(min(repeats, FEW))]
            yield Limit(f"spark ingest of {runs:,} runs", "", "s", took_s, [], required_s, hoped_for_s)


def _copy_run(run: Path, results: Path, runs: int) -> Path:
    """Make a folder of results with one trial of `runs` copies of a run; returns the folder."""
    for number in range(1, runs + 1):
        shutil.copytree(run, results / "trial" / f"{number:04}")
    (results / "trial" / "plan.json").write_text("{}")
    return results


def _ingest_s(results: Path) -> float:
    """Measure the seconds of an ingest into new tables."""
    shutil.rmtree(results / "tables", ignore_errors=True)
    start_s = time.monotonic()
    subprocess.run([*EXCHANGE, "spark", "ingest", str(results)], check=True, capture_output=True)
    return time.monotonic() - start_s
