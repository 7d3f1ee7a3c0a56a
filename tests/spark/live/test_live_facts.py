"""The figures of a second depend on the set of records, not on their order or their batches."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from spark_runs import MadeUpRun, Record, reading, record

from exchange.seconds import History, SourceInterval, SourceReading
from spark.live.facts import SMALL_KINDS, LiveFacts, RecordsSummary

JITTER_NS = 700_000_000


def small_records(*runs: MadeUpRun) -> list[Record]:
    """Return the records of the kinds that LiveFacts takes, and those that close the spool."""
    records: list[Record] = []
    for run in runs:
        records += [line for line in run.records if line["kind"] in (*SMALL_KINDS, "end")]
    return records


def with_late_traffic(records: list[Record]) -> list[Record]:
    """Return the records, of which traffic in even seconds was written late.

    A record that comes later may then show that the clock started earlier, which moves the meters' readings.
    """
    delayed = []
    for line in records:
        if line["kind"] == "traffic" and line["payload"]["second"] % 2 == 0:
            delayed.append({**line, "wall_ns": line["wall_ns"] + JITTER_NS})
        else:
            delayed.append(line)
    return delayed


ON_TIME = small_records(MadeUpRun(seconds=5, orders_per_s=10))
RECORDS = with_late_traffic(ON_TIME)
RECORDS_OF_TWO_PAIRS = with_late_traffic(
    small_records(
        MadeUpRun(seconds=3, orders_per_s=10, reporters=2),
        MadeUpRun(seconds=2, orders_per_s=7, pair=2, reporters=2),
    )
)
BEFORE_RUN = record("throughput", reading(1, 9, -3.0), at_s=-3.0)
AFTER_RUN = record("throughput", reading(1, 9, 9.5), at_s=9.5)


def summary_of(records: list[Record]) -> RecordsSummary:
    facts = []
    closed_reporters = set()
    reporter_count = 0
    for line in records:
        if line["kind"] in SMALL_KINDS:
            head = {name: line[name] for name in ("source", "kind", "wall_ns", "monotonic_ns")}
            facts.append({**line["payload"], **head})
        elif line["kind"] == "end":
            closed_reporters.add(line["source"])
            reporter_count = line["payload"]["reporters"]
    return RecordsSummary(
        records=len(records), facts=facts, closed_reporters=closed_reporters, reporter_count=reporter_count
    )


def changed_rows(batches: list[list[Record]]) -> dict[int, dict[str, Any]]:
    """Return every row as it was when it last changed."""
    facts = LiveFacts()
    rows: dict[int, dict[str, Any]] = {}
    for batch in batches:
        for second in facts.take(summary_of(batch)):
            rows[second] = {**facts.row(second), "final": facts.is_final(second)}
    return rows


def batches_of(records: list[Record], batch_size: int) -> list[list[Record]]:
    return [records[start : start + batch_size] for start in range(0, len(records), batch_size)]


@given(st.randoms(use_true_random=False), st.integers(1, len(RECORDS)))
def test_rows_depend_on_the_records_alone(chance: random.Random, batch_size: int) -> None:
    records = [*RECORDS, BEFORE_RUN, AFTER_RUN]
    of_one_batch = changed_rows([records])
    chance.shuffle(records)
    assert changed_rows(batches_of(records, batch_size)) == of_one_batch
    assert len(of_one_batch) == 6


@given(st.randoms(use_true_random=False), st.integers(1, len(RECORDS_OF_TWO_PAIRS)))
def test_rows_of_several_pairs_depend_on_the_records_alone(chance: random.Random, batch_size: int) -> None:
    records = list(RECORDS_OF_TWO_PAIRS)
    of_one_batch = changed_rows([records])
    chance.shuffle(records)
    of_batches = changed_rows(batches_of(records, batch_size))
    assert of_batches.keys() == of_one_batch.keys()
    for second, row in of_one_batch.items():
        assert of_batches[second] == pytest.approx(row, rel=1e-12)


def final_flags(*batches: list[Record]) -> list[bool]:
    """Return for each second whether its row is final after these batches."""
    rows = changed_rows(list(batches))
    return [rows[second]["final"] for second in sorted(rows)]


def test_a_second_is_final_once_each_gateway_reported_a_later_one() -> None:
    """Or once each of the two reporters has closed its part."""
    traffic = [line for line in RECORDS_OF_TWO_PAIRS if line["kind"] == "traffic"]
    first_end, second_end = (line for line in RECORDS_OF_TWO_PAIRS if line["kind"] == "end")
    assert final_flags(traffic) == [True, True, False, False]
    assert final_flags(traffic, [first_end]) == [True, True, False, False]
    assert final_flags(traffic, [first_end, second_end]) == [True, True, True, True]


def test_an_earlier_start_of_a_clock_moves_every_reading() -> None:
    on_time = [line for line in RECORDS if line["kind"] == "traffic" and line["payload"]["second"] in {1, 3}]
    others = [line for line in RECORDS if line not in on_time]
    assert changed_rows([others])[0] != changed_rows([RECORDS])[0]
    assert changed_rows([others, on_time]) == changed_rows([RECORDS])


def test_a_reading_outside_of_the_run_is_in_its_first_or_last_second() -> None:
    traffic = [line for line in ON_TIME if line["kind"] == "traffic"]
    rows = changed_rows([[*traffic, BEFORE_RUN, AFTER_RUN]])
    rates = [rows[second].get("gateway_orders_sent_per_s") for second in range(6)]
    first_rate = BEFORE_RUN["payload"]["rate_per_s"]
    last_rate = AFTER_RUN["payload"]["rate_per_s"]
    assert rates == [first_rate, None, None, None, None, last_rate]


def test_a_reading_grows_from_the_reading_of_the_earlier_second() -> None:
    """Second 3 came before second 1."""
    history = History()
    for second in (3, 1):
        history.put(second, SourceReading(second * 10**9, second / 2))
    assert history.interval_ending(1) == SourceInterval(2 * 10**9, 0.5)
    assert history.interval_ending(3) == SourceInterval(2 * 10**9, 1.0)
    assert history.interval_ending(2) is None
    assert history.after(1) == 3
    assert history.after(3) is None
    assert history.last == 3
