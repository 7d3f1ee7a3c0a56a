"""Measures how long a user waits for `--help`, and for a run's first order. Caches are warm; Spark does not start."""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.comparison import EXCHANGE, BenchmarkRow, Limit, in_turns


def rows(repeats: int) -> Iterator[BenchmarkRow]:
    """Measure both waits, after a round that fills the caches."""
    help_s, _ = in_turns(until_help, None, repeats)
    yield Limit(title="exchange --help", unit="s", ours=help_s, required=0.4, hoped_for=0.2)
    first_order_s, _ = in_turns(until_first_order, None, repeats)
    yield Limit(title="exchange run, to the first order", unit="s", ours=first_order_s, required=3, hoped_for=1.5)


def until_help() -> float:
    """Measure the seconds until `exchange --help` has printed and ended."""
    start_ns = time.monotonic_ns()
    subprocess.run([*EXCHANGE, "--help"], capture_output=True, check=True)
    return (time.monotonic_ns() - start_ns) / 1e9


def until_first_order() -> float:
    """Measure the seconds until the gateway hands over an order, by the monotonic clock, which all processes share."""
    run = [*EXCHANGE, "run", "--json", "--no-spark", "--orders", "1", "--sampling-interval", "1"]
    with tempfile.TemporaryDirectory(prefix="exchange-runs-") as results:
        start_ns = time.monotonic_ns()
        subprocess.run([*run, "--results", results], capture_output=True, check=True)
        return (handed_over_ns(Path(results)) - start_ns) / 1e9


def handed_over_ns(results: Path) -> int:
    """Return the time at which the only sampled order of the only run was handed over."""
    for path in results.glob("*/spool/*.jsonl"):
        for line in path.read_text().splitlines():
            record = json.loads(line)
            if record["kind"] == "sample":
                return int(record["payload"]["handed_over_ns"])
    raise RuntimeError(f"no order was sampled in {results}")
