"""What is known of each second depends on the set of records, not on the order or the batches they came in."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from spark_runs import MadeUpRun, Record, reading, record

from spark.live.facts import Facts
from spark.live.history import History, Reading
from spark.live.note import SMALL_KINDS, Note

RECORDS = [r for r in MadeUpRun(seconds=5, orders_per_s=10).records if r["kind"] in (*SMALL_KINDS, "end")]
OUTSIDE = [record("throughput", reading(1, 9, at_s), at_s=at_s) for at_s in (-3.0, 9.5)]


def note_of(number: int, records: list[Record]) -> Note:
    head = ("source", "kind", "wall_ns", "monotonic_ns")
    facts = [{**r["payload"], **{name: r[name] for name in head}} for r in records if r["kind"] in SMALL_KINDS]
    ended = any(r["kind"] == "end" for r in records)
    return Note(batch_id=number, lines=len(records), records=len(records), facts=facts, ended=ended)


def told(batches: list[list[Record]]) -> dict[int, dict[str, Any]]:
    """Every row as it was when it was last said to have changed."""
    facts, rows = Facts(), dict[int, dict[str, Any]]()
    for number, batch in enumerate(batches):
        rows |= {
            second: {**facts.row(second), "final": facts.is_final(second)}
            for second in facts.take(note_of(number, batch))
        }
    return rows


@given(st.randoms(use_true_random=False), st.lists(st.integers(0, len(RECORDS) + 2), max_size=8))
def test_rows_depend_on_the_records_alone(chance: random.Random, ends: list[int]) -> None:
    records = [*RECORDS, *OUTSIDE]
    in_one = told([records])
    chance.shuffle(records)
    cuts = [0, *sorted(ends), len(records)]
    assert told([records[start:end] for start, end in pairwise(cuts)]) == in_one
    assert len(in_one) == 6


def test_a_reading_is_seen_against_the_one_before_whichever_came_first() -> None:
    history = History()
    for second in (3, 1):
        history.put(second, Reading(second * 10**9, second / 2))
    assert history.grown(1) == Reading(2 * 10**9, 0.5)
    assert history.grown(3) == Reading(2 * 10**9, 1.0)
    assert (history.after(1), history.after(3), history.grown(2), history.last) == (3, None, None, 3)
