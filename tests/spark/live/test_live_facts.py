"""The figures of a second depend on the set of records, not on their order or their batches."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from spark_runs import MadeUpRun, Record, reading, record

from exchange.seconds import History, Reading
from spark.live.batch import SMALL_KINDS, BatchSummary, LiveFacts

JITTER_NS = 700_000_000


def delayed(line: Record) -> Record:
    """So that a later record may tell of an earlier start of the clock, and readings move."""
    is_late = line["kind"] == "traffic" and line["payload"]["second"] % 2 == 0
    return {**line, "wall_ns": line["wall_ns"] + JITTER_NS * is_late}


SMALL = [r for r in MadeUpRun(seconds=5, orders_per_s=10).records if r["kind"] in (*SMALL_KINDS, "end")]
RECORDS = list(map(delayed, SMALL))
OF_PAIRS = [
    delayed(r)
    for run in (
        MadeUpRun(seconds=3, orders_per_s=10, reporters=2),
        MadeUpRun(seconds=2, orders_per_s=7, pair=2, reporters=2),
    )
    for r in run.records
    if r["kind"] in (*SMALL_KINDS, "end")
]
OUTSIDE = [record("throughput", reading(1, 9, at_s), at_s=at_s) for at_s in (-3.0, 9.5)]


def batch_of(number: int, records: list[Record]) -> BatchSummary:
    head = ("source", "kind", "wall_ns", "monotonic_ns")
    facts = [{**r["payload"], **{name: r[name] for name in head}} for r in records if r["kind"] in SMALL_KINDS]
    ends = {r["source"]: r["payload"]["reporters"] for r in records if r["kind"] == "end"}
    return BatchSummary(batch_id=number, lines=len(records), records=len(records), facts=facts, ends=ends)


def changed_rows(batches: list[list[Record]]) -> dict[int, dict[str, Any]]:
    """Every row as it was when it last changed."""
    facts, rows = LiveFacts(), dict[int, dict[str, Any]]()
    for number, batch in enumerate(batches):
        rows |= {
            second: {**facts.row(second), "final": facts.is_final(second)}
            for second in facts.take(batch_of(number, batch))
        }
    return rows


@given(st.randoms(use_true_random=False), st.integers(1, len(RECORDS)))
def test_rows_depend_on_the_records_alone(chance: random.Random, of_a_batch: int) -> None:
    records = [*RECORDS, *OUTSIDE]
    in_one = changed_rows([records])
    chance.shuffle(records)
    assert changed_rows([records[start : start + of_a_batch] for start in range(0, len(records), of_a_batch)]) == in_one
    assert len(in_one) == 6


@given(st.randoms(use_true_random=False), st.integers(1, len(OF_PAIRS)))
def test_rows_of_several_pairs_depend_on_the_records_alone(chance: random.Random, of_a_batch: int) -> None:
    records = list(OF_PAIRS)
    in_one = changed_rows([records])
    chance.shuffle(records)
    in_several = changed_rows([records[start : start + of_a_batch] for start in range(0, len(records), of_a_batch)])
    assert in_several.keys() == in_one.keys()
    for second, row in in_one.items():
        assert in_several[second] == pytest.approx(row, rel=1e-12)


def test_a_second_is_final_when_each_gateway_has_told_of_a_later_one() -> None:
    traffic = [r for r in OF_PAIRS if r["kind"] == "traffic"]
    ends = [r for r in OF_PAIRS if r["kind"] == "end"]
    assert [row["final"] for row in changed_rows([traffic]).values()] == [True, True, False, False]
    assert [row["final"] for row in changed_rows([traffic, ends[:1]]).values()] == [True, True, False, False]
    assert [row["final"] for row in changed_rows([traffic, ends]).values()] == [True] * 4


def test_an_earlier_start_of_a_clock_moves_every_reading() -> None:
    prompt = [r for r in RECORDS if r["kind"] == "traffic" and r["payload"]["second"] in {1, 3}]
    others = [r for r in RECORDS if r not in prompt]
    assert changed_rows([others])[0] != changed_rows([RECORDS])[0]
    assert changed_rows([others, prompt]) == changed_rows([RECORDS])


def test_a_reading_outside_of_the_run_is_in_its_first_or_last_second() -> None:
    rows = changed_rows([[*(r for r in SMALL if r["kind"] == "traffic"), *OUTSIDE]])
    rates = {second: row.get("gateway_orders_sent_per_s") for second, row in rows.items()}
    first, last = (line["payload"]["rate_per_s"] for line in OUTSIDE)
    assert rates == {**dict.fromkeys(range(6)), 0: first, 5: last}


def test_a_reading_is_seen_against_the_one_before_whichever_came_first() -> None:
    history = History()
    for second in (3, 1):
        history.put(second, Reading(second * 10**9, second / 2))
    assert history.grown(1) == Reading(2 * 10**9, 0.5)
    assert history.grown(3) == Reading(2 * 10**9, 1.0)
    assert (history.after(1), history.after(3), history.grown(2), history.last) == (3, None, None, 3)
