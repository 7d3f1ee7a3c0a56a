"""The open loop: due times are fixed at the start, and no stall moves them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.due_times import NEVER_NS, Periodic
from gateway.pacer import LOOK_AHEAD, Pacer, Schedule

START_NS = 1_234_567_890_123


def started(orders_per_s: float | None, packing: int = 1, order_limit: int = 1_000) -> Pacer:
    """Return a pacer that was started at START_NS."""
    schedule = Schedule(Periodic(1e9 / orders_per_s)) if orders_per_s else None
    pacer = Pacer(schedule, packing, order_limit)
    pacer.start(START_NS)
    return pacer


RATES = st.floats(0.5, 1e7)


def test_order_i_is_due_i_minus_one_periods_after_the_start():
    pacer = started(8_000.0)
    assert [pacer.due_ns(i) - START_NS for i in (1, 2, 3, 801)] == [0, 125_000, 250_000, 100_000_000]


def test_a_period_that_is_no_whole_number_does_not_drift():
    pacer = started(3_000.0, order_limit=10**6)
    assert pacer.due_ns(3_000_001) == START_NS + 1_000 * 10**9


def test_the_first_order_is_due_at_the_start():
    assert started(1_000.0).due_by(START_NS, 0) == 1


def test_one_more_order_is_due_each_period():
    pacer = started(1_000.0)
    due = [pacer.due_by(START_NS + ms * 10**6, 0) for ms in range(6)]
    assert due == [1, 2, 3, 4, 5, 6]
    assert pacer.due_by(START_NS + 5 * 10**6 - 1, 0) == 5


@given(RATES, st.integers(0, 10**10))
def test_no_order_goes_before_it_is_due(orders_per_s, elapsed_ns):
    pacer = started(orders_per_s, order_limit=10**6)
    due = pacer.due_by(START_NS + elapsed_ns, 0)
    assert pacer.due_ns(due) <= START_NS + elapsed_ns


@given(RATES, st.integers(1, 10**5))
def test_every_order_is_due_at_its_time_or_the_next_nanosecond(orders_per_s, order_id):
    pacer = started(orders_per_s, order_limit=10**6)
    assert pacer.due_by(pacer.due_ns(order_id) + 1, order_id - 1) >= order_id


@given(RATES, st.lists(st.integers(0, 10**9), max_size=20))
def test_a_stall_does_not_move_later_due_times(orders_per_s, stalls_ns):
    pacer = started(orders_per_s)
    undisturbed = started(orders_per_s)
    now_ns = START_NS
    sent = 0
    for stall_ns in stalls_ns:
        now_ns += stall_ns
        sent = pacer.due_by(now_ns, sent)
        assert pacer.next_due_ns(sent) == undisturbed.next_due_ns(sent)
    for order_id in (1, 500, 1_000):
        assert pacer.due_ns(order_id) == undisturbed.due_ns(order_id)


def test_orders_delayed_by_a_stall_are_due_at_once_afterwards():
    pacer = started(1_000.0)
    assert pacer.due_by(START_NS + 500 * 10**6, 0) == 501
    assert pacer.next_due_ns(100) == START_NS + 100 * 10**6  # in the past, so the loop does not wait


def test_after_a_long_stall_one_batch_is_due_at_a_time():
    pacer = started(1_000.0, order_limit=10**6)
    assert pacer.due_by(START_NS + 10**15, 0) == LOOK_AHEAD
    assert pacer.due_by(START_NS + 10**15, 500) == 500 + LOOK_AHEAD


def test_nothing_is_due_beyond_the_last_order():
    pacer = started(1_000.0, order_limit=10)
    assert pacer.due_by(START_NS + 10**12, 0) == 10
    assert pacer.next_due_ns(10) == NEVER_NS


def test_only_whole_packs_are_due():
    pacer = started(1_000.0, packing=4, order_limit=100)
    due = [pacer.due_by(START_NS + ms * 10**6, 0) for ms in range(9)]
    assert due == [0, 0, 0, 4, 4, 4, 4, 8, 8]


def test_a_pack_goes_when_its_last_order_is_due():
    pacer = started(1_000.0, packing=4, order_limit=100)
    assert pacer.next_due_ns(0) == pacer.due_ns(4) == START_NS + 3 * 10**6
    assert pacer.next_due_ns(4) == pacer.due_ns(8)


def test_packing_leaves_each_order_its_own_due_time():
    packed = started(1_000.0, packing=4)
    unpacked = started(1_000.0)
    for order_id in range(1, 9):
        assert packed.due_ns(order_id) == unpacked.due_ns(order_id)


def test_a_short_last_pack_is_due_with_its_last_order():
    pacer = started(1_000.0, packing=4, order_limit=10)
    assert pacer.next_due_ns(8) == pacer.due_ns(10)
    assert pacer.due_by(pacer.due_ns(10) - 1, 8) == 8
    assert pacer.due_by(pacer.due_ns(10), 8) == 10


def test_a_run_shorter_than_a_pack_is_due_as_one_pack():
    pacer = started(1_000.0, packing=100, order_limit=3)
    assert pacer.due_by(START_NS, 0) == 0
    assert pacer.next_due_ns(0) == pacer.due_ns(3)
    assert pacer.due_by(pacer.due_ns(3), 0) == 3


@given(RATES, st.integers(1, 50), st.integers(1, 500), st.integers(0, 10**9))
def test_the_due_orders_are_whole_packs_or_the_whole_run(orders_per_s, packing, order_limit, elapsed_ns):
    pacer = started(orders_per_s, packing, order_limit)
    due = pacer.due_by(START_NS + elapsed_ns, 0)
    assert due == order_limit or due % packing == 0
    assert 0 <= due <= order_limit


@given(RATES, st.integers(1, 50), st.integers(1, 500))
def test_at_the_next_due_time_an_order_is_due(orders_per_s, packing, order_limit):
    pacer = started(orders_per_s, packing, order_limit)
    sent = 0
    now_ns = START_NS
    for _ in range(5):
        now_ns = max(now_ns, pacer.next_due_ns(sent) + 1)
        if now_ns > NEVER_NS:
            break
        assert pacer.due_by(now_ns, sent) > sent
        sent = pacer.due_by(now_ns, sent)


def test_a_schedule_lasts_from_its_first_pack_to_its_last_order():
    assert started(1_000.0, order_limit=100).length_s(100) == 0.099
    assert started(1_000.0, packing=4, order_limit=100).length_s(100) == 0.096
    assert started(1_000.0, packing=4, order_limit=3).length_s(3) == 0.0
    assert started(1_000.0).length_s(0) is None
    assert started(None).length_s(100) is None


def test_at_rate_max_every_order_is_due_at_once_without_a_schedule():
    pacer = started(None, packing=4, order_limit=1_001)
    assert not pacer.scheduled
    assert pacer.due_by(START_NS, 0) == 1_001
    assert pacer.next_due_ns(0) <= START_NS
    assert pacer.next_due_ns(1_001) == NEVER_NS


@pytest.mark.parametrize("orders_per_s", [0.001, 1.0, 1e8])
def test_every_rate_makes_a_schedule(orders_per_s):
    assert started(orders_per_s).scheduled
