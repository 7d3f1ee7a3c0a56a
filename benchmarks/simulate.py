"""`exchange simulate` on Spark with two local cores, against the same command in one process without Spark.

    ours       exchange simulate --master local[2]  ─▶  two Python workers of Spark's
    reference  exchange simulate --master none      ─▶  this one process

Both generate, match, checksum and write the same rows, and their checksums must be equal. The clock runs from the first
order to the last row; start-up (Java, workers, kernels) has a row of its own.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

from benchmarks.comparison import Row
from benchmarks.exchange import Limit

MARKET = ("--instruments", "1000", "--orders", "4e8")
MASTER = "local[2]"
LONGEST_S = 300.0

Record = dict[str, Any]


def rows(repeats: int) -> Iterator[Row]:
    """Measure both in turns, after one round that does not count."""
    pairs = [(simulated(MASTER), simulated("none")) for _ in range(repeats + 1)][1:]
    for pair in pairs:
        agree(*pair)
    ours, reference = ([record["rates"]["orders_per_s"] for record in side] for side in zip(*pairs, strict=True))
    what = f"simulate, {' '.join(MARKET).replace('--', '')}, {MASTER}"
    yield Row(what, "one process", "orders/s", ours, reference, reach=1.2, aim=1.6)
    yield Limit("its start-up", "", "s", [record["rates"]["start_up_s"] for record, _ in pairs], [])


def simulated(master: str) -> Record:
    """The simulation.json of one simulation. RuntimeError where it failed."""
    with tempfile.TemporaryDirectory(prefix="exchange-simulations-") as results:
        command = [sys.executable, "-m", "cli", "simulate", *MARKET, "--master", master, "--json"]
        done = subprocess.run(
            [*command, "--results", results], capture_output=True, text=True, timeout=LONGEST_S, check=False
        )
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stderr}")
    record: Record = json.loads(done.stdout)
    return record


def agree(ours: Record, reference: Record) -> None:
    """AssertionError where the two results differ."""
    if ours["checksums"] != reference["checksums"] or ours["totals"] != reference["totals"]:
        raise AssertionError(f"Spark's simulation is not that of one process: {ours} {reference}")
