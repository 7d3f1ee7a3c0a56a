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
    ours = []
    reference = []
    start_up_s = []
    for number in range(repeats + 1):
        spark_record = simulate(MASTER)
        plain_record = simulate("none")
        check_agreement(spark_record, plain_record)
        if number > 0:  # the first round does not count
            ours.append(spark_record["rates"]["orders_per_s"])
            reference.append(plain_record["rates"]["orders_per_s"])
            start_up_s.append(spark_record["rates"]["start_up_s"])
    title = f"simulate, {' '.join(MARKET).replace('--', '')}, {MASTER}"
    yield BenchmarkRow(title, "one process", "orders/s", ours, reference, required=1.2, hoped_for=1.6)
    yield Limit(title="its start-up", unit="s", ours=start_up_s)


def simulate(master: str) -> Record:
    """Make a simulation; returns its simulation.json."""
    return record_of("simulate", *MARKET, "--master", master)


def check_agreement(ours: Record, reference: Record) -> None:
    """Raise AssertionError if the two results differ."""
    if ours["checksums"] != reference["checksums"] or ours["totals"] != reference["totals"]:
        raise AssertionError(f"Spark's simulation differs from that of one process: {ours} {reference}")
