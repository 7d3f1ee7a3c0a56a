"""`exchange simulate` on Spark with two local cores, against the same command in one process without Spark.

    ours       exchange simulate --master local[2]  ─▶  two Python workers of Spark's
    reference  exchange simulate --master none      ─▶  this one process

Both generate, match, checksum and write the same rows, and their checksums must be equal. The clock runs from the first
order to the last row; start-up (Java, workers, kernels) has a row of its own.
"""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.comparison import BenchmarkRow, Limit, Record, record_of

MARKET = ("--instruments", "1000", "--orders", "4e8")
MASTER = "local[2]"


def rows(repeats: int) -> Iterator[BenchmarkRow]:
    """Compare both in turns, after one round that does not count."""
    pairs = [(simulated(MASTER), simulated("none")) for _ in range(repeats + 1)][1:]
    for pair in pairs:
        agree(*pair)
    ours, reference = ([record["rates"]["orders_per_s"] for record in side] for side in zip(*pairs, strict=True))
    what = f"simulate, {' '.join(MARKET).replace('--', '')}, {MASTER}"
    yield BenchmarkRow(what, "one process", "orders/s", ours, reference, reach=1.2, aim=1.6)
    yield Limit("its start-up", "", "s", [record["rates"]["start_up_s"] for record, _ in pairs], [])


def simulated(master: str) -> Record:
    """Make a simulation; returns its simulation.json."""
    return record_of("simulate", *MARKET, "--master", master)


def agree(ours: Record, reference: Record) -> None:
    """Raise AssertionError if the two results differ."""
    if ours["checksums"] != reference["checksums"] or ours["totals"] != reference["totals"]:
        raise AssertionError(f"Spark's simulation is not that of one process: {ours} {reference}")
