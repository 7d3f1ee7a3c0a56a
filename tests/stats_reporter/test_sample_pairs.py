"""Sampled orders: three readings of one clock, brought together by id."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exchange.measurements import Meter
from exchange.messages import Timestamp
from stats_reporter.sample_pairs import SamplePairs

HANDED, ANSWERED, DUE = Meter.ORDER_HANDED_OVER, Meter.ORDER_ANSWERED, Meter.ORDER_DUE


def stamps_of(order_id: int, scheduled: bool = True) -> list[Timestamp]:
    """Stamps as the gateway sends them; each time encodes its order and its meter."""
    meters = (HANDED, DUE, ANSWERED) if scheduled else (HANDED, ANSWERED)
    return [Timestamp(meter, order_id, 1_000 * order_id + meter) for meter in meters]


def sample_of(order_id: int, scheduled: bool = True) -> dict:
    return {
        "id": order_id,
        "due_ns": 1_000 * order_id + DUE if scheduled else None,
        "handed_over_ns": 1_000 * order_id + HANDED,
        "answered_ns": 1_000 * order_id + ANSWERED,
    }


def taken(pairs: SamplePairs, stamps) -> list[dict]:
    return [sample for sample in map(pairs.take, stamps) if sample is not None]


def test_the_answer_completes_a_sample():
    pairs = SamplePairs()
    handed, due, answered = stamps_of(7)
    assert pairs.take(handed) is None
    assert pairs.take(due) is None
    assert (pairs.paired, list(pairs.open)) == (0, [7])
    assert pairs.take(answered) == sample_of(7)
    assert (pairs.paired, pairs.open) == (1, {})


def test_without_a_schedule_no_due_time_is_waited_for():
    pairs = SamplePairs()
    assert taken(pairs, stamps_of(3, scheduled=False)) == [sample_of(3, scheduled=False)]


@given(
    st.lists(st.integers(1, 50), unique=True, max_size=12).flatmap(
        lambda ids: st.tuples(st.just(ids), st.permutations([order_id for order_id in ids for _ in range(3)]))
    )
)
def test_readings_of_many_orders_pair_by_id_however_they_interleave(ids_and_turns):
    ids, turns = ids_and_turns
    flows = {order_id: iter(stamps_of(order_id)) for order_id in ids}
    pairs = SamplePairs()
    samples = taken(pairs, [next(flows[order_id]) for order_id in turns])
    assert sorted(samples, key=lambda sample: sample["id"]) == [sample_of(order_id) for order_id in sorted(ids)]
    assert (pairs.paired, pairs.open) == (len(ids), {})


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))), ids=lambda p: "".join(map(str, p)))
def test_with_a_schedule_three_readings_may_come_in_any_order(order):
    pairs, stamps = SamplePairs(), stamps_of(5)
    first = taken(pairs, stamps_of(4))
    assert first + taken(pairs, [stamps[index] for index in order]) == [sample_of(4), sample_of(5)]
    assert pairs.open == {}


def test_an_order_that_is_never_answered_stays_open():
    pairs = SamplePairs()
    taken(pairs, [*stamps_of(1)[:2], *stamps_of(2)])
    assert (pairs.paired, list(pairs.open)) == (1, [1])


def test_an_answer_alone_is_no_sample():
    pairs = SamplePairs()
    assert pairs.take(Timestamp(ANSWERED, 9, 5)) is None
    assert pairs.paired == 0
