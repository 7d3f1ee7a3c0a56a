"""Bounds of the offset between two clocks."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from exchange_simulation.launching.hosts.clock_offset import ClockOffset, OffsetReading, narrowest

DELAYS_NS = st.integers(0, 10**9)


@given(
    offset_ns=st.integers(-(10**15), 10**15),
    delays=st.lists(st.tuples(DELAYS_NS, DELAYS_NS), min_size=1, max_size=20),
)
def test_the_true_offset_is_within_the_bounds(offset_ns: int, delays: list[tuple[int, int]]) -> None:
    readings = []
    now_ns = 0
    for forth_ns, back_ns in delays:
        read_at_ns = now_ns + forth_ns
        readings.append(OffsetReading(now_ns, read_at_ns + offset_ns, read_at_ns + back_ns))
        now_ns = read_at_ns + back_ns
    bounds = narrowest(readings)
    assert bounds.low_ns <= offset_ns <= bounds.high_ns
    assert abs(bounds.middle_ns - offset_ns) <= bounds.bound_ns
    shortest_ns = min(forth_ns + back_ns for forth_ns, back_ns in delays)
    assert bounds.high_ns - bounds.low_ns <= shortest_ns


def test_the_offset_of_two_hosts_is_as_uncertain_as_both_together() -> None:
    difference = ClockOffset(100, 120).minus(ClockOffset(-10, 10))
    assert difference == ClockOffset(90, 130)
    assert difference.bound_ns == 20


def test_a_later_measurement_widens_the_bounds_to_hold_at_both_times() -> None:
    assert ClockOffset(0, 10).widened_by(ClockOffset(30, 40)) == ClockOffset(0, 40)


def test_clocks_that_drift_by_more_than_a_round_trip_have_bounds_nevertheless() -> None:
    readings = [OffsetReading(0, 5, 10), OffsetReading(1000, 2000, 1004)]
    assert narrowest(readings) == ClockOffset(996, 1000)
