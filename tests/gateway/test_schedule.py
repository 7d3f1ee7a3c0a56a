"""Due times on the gateway's clock: whoever asks for what, and in what steps, is told the same."""

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
    """All at once."""
    return {arrivals: written(source(arrivals, ORDERS), ORDERS) + START_NS for arrivals in KINDS}


@given(arrivals=st.sampled_from(KINDS), counts=STEPS)
def test_batches_of_any_size_get_the_same_due_times(due_ns, arrivals, counts):
    schedule, sent = started(arrivals), 0
    for count in counts:
        if sent + count > ORDERS:
            break
        assert (schedule.span(sent + 1, count) == due_ns[arrivals][sent : sent + count]).all()
        sent += count


@given(arrivals=st.sampled_from(KINDS), waits_ns=st.lists(st.integers(0, 10**8), min_size=5, max_size=40))
def test_what_is_due_is_what_a_count_of_all_due_times_says(due_ns, arrivals, waits_ns):
    schedule, now_ns, after = started(arrivals), START_NS, 0
    for wait_ns in waits_ns:
        now_ns += wait_ns
        known = int(np.searchsorted(due_ns[arrivals], now_ns, "right"))
        due = schedule.due_by(now_ns, after)
        assert due == min(known, after + LOOK_AHEAD)
        after = due
        assert schedule.due_ns(after + 1) == due_ns[arrivals][after]


def test_an_order_s_due_time_is_known_until_long_after_it_went(due_ns):
    schedule = started("poisson")
    for order_id in range(1, ORDERS, 700):
        schedule.due_ns(order_id)
        earlier = max(order_id - WINDOW // 4, 1)
        assert schedule.due_ns(earlier) == due_ns["poisson"][earlier - 1]


def test_an_order_that_went_too_long_ago_is_no_other_order():
    schedule = started("fixed")
    schedule.due_ns(2 * WINDOW)
    with pytest.raises(LookupError, match="order 1 is no longer"):
        schedule.due_ns(1)
