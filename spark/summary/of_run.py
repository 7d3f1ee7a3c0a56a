"""The rows of one run, from its records: of each of its seconds, and of all of it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from exchange.records import COMPLETION, PROCESS, THROUGHPUT, TRAFFIC
from spark.run_record import RunRecord
from spark.summary.columns import FACTS, OFFERED, RATE
from spark.summary.columns import TRAFFIC as COUNTED
from spark.summary.facts import Fact, Facts
from spark.summary.times import COLUMNS, WHOLE_RUN, Times

Row = dict[str, Any]
ORIGIN = ("source", "wall_ns", "monotonic_ns")
READ: dict[str, tuple[str, ...]] = {
    TRAFFIC: (*ORIGIN, "second", *COUNTED),
    PROCESS: (*ORIGIN, "second", "cpu_s"),
    THROUGHPUT: (*ORIGIN, "meter", "rate_per_s"),
    COMPLETION: COLUMNS,
}
"""The kinds that are summarized, and what is read of each."""


def rows_of_run(run: RunRecord, tables: Iterable[tuple[str, pa.Table]]) -> list[Row]:
    """Of spark.summary.columns.ROWS what is known: a row a second, in order, then that of the run.

    `tables`: (kind, some of its records with the columns READ), in any order.
    """
    facts: list[Fact] = []
    times = Times(run.warm_up_s, run.gateways)
    for kind, records in tables:
        if kind == COMPLETION:
            times.take(records)
        else:
            facts += [{**record, "kind": kind} for record in records.to_pylist()]
    return _rows(run, facts, times)


def _rows(run: RunRecord, said: list[Fact], times: Times) -> list[Row]:
    facts, figures = Facts(run.duration_s), times.figures()
    facts.take(said)
    whole = facts.whole() | figures.pop(WHOLE_RUN, {})
    known = {fact["second"] for fact in said if fact["kind"] != THROUGHPUT} | figures.keys()
    each = [facts.row(second) | figures[second] | {"second": second} for second in sorted(known)]
    about = {name: getattr(run, name) for name in ("experiment", "run", "status", "transport", "arm")}
    of_second = about | {OFFERED: run.offered_each_second_per_s}
    of_run = about | {OFFERED: run.offered_orders_per_s, RATE: run.orders_per_s}
    return [*(of_second | row for row in each), of_run | whole | {name: run.facts.get(name) for name in FACTS}]
