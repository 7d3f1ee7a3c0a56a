"""Due times on the gateway's clock are the same for all orders and sizes of steps in which they are read."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from schedules import KINDS, source, written
from scripted_links import START_NS

from gateway.pacer import LOOK_AHEAD, WINDOW, Schedule

ORDERS = 3 * WINDOW
STEPS = st.lists(st.integers(1, LOOK_AHEAD), min_size=30, max_size=80)


def started(arrivals: str) -> Schedule:
    schedule = Schedule(source(arrivals, ORDERS))
    schedule.start(START_NS)
    return schedule


@pytest.fixture(scope="module")
def due_ns() -> dict[str, np.ndarray]:
    """The due times of each kind of arrivals, written in one block."""
    return {arrivals: written(source(arrivals, ORDERS), ORDERS) + START_NS for arrivals in KINDS}


@given(arrivals=st.sampled_from(KINDS), counts=STEPS)
def test_batches_of_any_size_get_the_same_due_times(due_ns, arrivals, counts):
    schedule = started(arrivals)
    sent = 0
    for count in counts:
        if sent + count > ORDERS:
            break
        assert (schedule.span(sent + 1, count) == due_ns[arrivals][sent : sent + count]).all()
        sent += count


@given(arrivals=st.sampled_from(KINDS), waits_ns=st.lists(st.integers(0, 10**8), min_size=5, max_size=40))
def test_the_due_orders_are_those_with_a_due_time_in_the_past(due_ns, arrivals, waits_ns):
    schedule = started(arrivals)
    now_ns = START_NS
    sent = 0
    for wait_ns in waits_ns:
        now_ns += wait_ns
        past_due_times = int(np.searchsorted(due_ns[arrivals], now_ns, "right"))
        due = schedule.due_by(now_ns, sent)
        assert due == min(past_due_times, sent + LOOK_AHEAD)
        sent = due
        assert schedule.due_ns(sent + 1) == due_ns[arrivals][sent]


def test_due_times_of_recent_orders_can_still_be_read(due_ns):
    schedule = started("poisson")
    for order_id in range(1, ORDERS, 700):
        schedule.due_ns(order_id)
        earlier = max(order_id - WINDOW // 4, 1)
        assert schedule.due_ns(earlier) == due_ns["poisson"][earlier - 1]


def test_a_forgotten_due_time_is_an_error():
    schedule = started("fixed")
    schedule.due_ns(2 * WINDOW)
    with pytest.raises(LookupError, match="order 1 is no longer"):
        schedule.due_ns(1)
