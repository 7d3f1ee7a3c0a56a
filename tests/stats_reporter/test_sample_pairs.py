"""Sampled orders: up to three times of an order become one sample, by the order's id."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exchange.messages import Timestamp
from exchange.meters import Meter
from stats_reporter.sample_pairs import SamplePairs

HANDED = Meter.ORDER_HANDED_OVER
ANSWERED = Meter.ORDER_ANSWERED
DUE = Meter.ORDER_DUE


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


def take_all(pairs: SamplePairs, stamps) -> list[dict]:
    """Let `pairs` take the stamps. Returns the samples that they complete."""
    samples = [pairs.take(stamp) for stamp in stamps]
    return [sample for sample in samples if sample is not None]


def test_the_answer_completes_a_sample():
    pairs = SamplePairs()
    handed, due, answered = stamps_of(7)
    assert pairs.take(handed) is None
    assert pairs.take(due) is None
    assert pairs.paired == 0
    assert list(pairs.open) == [7]
    assert pairs.take(answered) == sample_of(7)
    assert pairs.paired == 1
    assert pairs.open == {}


def test_without_a_schedule_a_sample_needs_no_due_time():
    pairs = SamplePairs()
    assert take_all(pairs, stamps_of(3, scheduled=False)) == [sample_of(3, scheduled=False)]


@given(st.data())
def test_interleaved_stamps_of_many_orders_are_paired_by_id(data):
    ids = data.draw(st.lists(st.integers(1, 50), unique=True, max_size=12))
    ids_in_sequence = data.draw(st.permutations(3 * ids))
    stamps_left = {order_id: iter(stamps_of(order_id)) for order_id in ids}
    pairs = SamplePairs()
    samples = take_all(pairs, [next(stamps_left[order_id]) for order_id in ids_in_sequence])
    assert sorted(samples, key=lambda sample: sample["id"]) == [sample_of(order_id) for order_id in sorted(ids)]
    assert pairs.paired == len(ids)
    assert pairs.open == {}


@pytest.mark.parametrize("stamps", list(itertools.permutations(stamps_of(5))))
def test_with_a_schedule_the_three_stamps_may_come_in_any_order(stamps):
    pairs = SamplePairs()
    assert take_all(pairs, stamps_of(4)) == [sample_of(4)]  # from a first sample it knows that there is a schedule
    assert take_all(pairs, stamps) == [sample_of(5)]
    assert pairs.open == {}


def test_an_order_that_is_never_answered_stays_open():
    pairs = SamplePairs()
    take_all(pairs, [*stamps_of(1)[:2], *stamps_of(2)])
    assert pairs.paired == 1
    assert list(pairs.open) == [1]


def test_an_answer_alone_is_no_sample():
    pairs = SamplePairs()
    assert pairs.take(Timestamp(ANSWERED, 9, 5)) is None
    assert pairs.paired == 0
