"""Loads over time: due times are a function of the settings alone, and have the rate of each segment."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

from exchange.load_shape import LoadShape
from exchange.settings import RunSettings
from exchange_simulation.launching.typed_settings import run_settings
from gateway.due_times import Shaped, due_times_of
from transports.frames import Longs

SECOND_NS = 10**9


def settings(load: str, **given: object) -> RunSettings:
    """The settings of `exchange run --rate LOAD`."""
    return run_settings(orders_per_s=LoadShape.parse(load), **given)


def due_times(settings_of_run: RunSettings) -> Longs:
    due = np.zeros(settings_of_run.order_limit, np.int64)
    generator = due_times_of(settings_of_run)
    assert generator is not None
    generator.write(due, 0)
    return due


def orders_by_second(settings_of_run: RunSettings) -> list[int]:
    return np.bincount(due_times(settings_of_run) // SECOND_NS).tolist()


def test_steps_have_their_rates() -> None:
    assert orders_by_second(settings("1000@2s,8000@1s,500@2s")) == [1000, 1000, 8000, 500, 500]


def test_an_open_end_lasts_as_long_as_the_run() -> None:
    assert orders_by_second(settings("1000@1s,2000", duration_s=3.0)) == [1000, 2000, 2000]


def test_a_ramp_rises_by_the_same_number_every_second() -> None:
    by_second = orders_by_second(settings("1000..5000@4s"))
    assert sum(by_second) == 12_000
    assert by_second == pytest.approx([1500, 2500, 3500, 4500], abs=1)


def test_a_falling_ramp_is_the_mirror_of_a_rising_one() -> None:
    assert orders_by_second(settings("5000..1000@4s")) == pytest.approx([4500, 3500, 2500, 1500], abs=1)


def test_a_spike_stands_between_two_equal_rates() -> None:
    by_tenth = np.bincount(due_times(settings("1000@1s,50k@100ms,1000@900ms")) // (SECOND_NS // 10))
    assert by_tenth.tolist() == [100] * 10 + [5000] + [100] * 9


def test_a_shorter_duration_cuts_the_shape_and_a_longer_one_goes_on_at_the_last_rate() -> None:
    assert orders_by_second(settings("1000@2s,4000@2s", duration_s=3.0)) == [1000, 1000, 4000]
    assert orders_by_second(settings("1000@1s,4000@1s", duration_s=3.0)) == [1000, 4000, 4000]


def test_arrivals_hold_the_shape_in_shares_of_the_highest_rate() -> None:
    made = settings("1000@10s,8000@10s,1000@5s")
    assert made.orders_per_s == 8000
    assert made.arrivals == "steps:0.125@10,1@10,0.125@5"
    assert made.duration_s == 25
    again = RunSettings(orders_per_s=8000.0, arrivals=made.arrivals, orders=None, duration_s=25.0)
    assert due_times(again).tolist() == due_times(made).tolist()


@given(
    some.lists(
        some.tuples(some.integers(100, 9_000), some.integers(100, 9_000), some.floats(0.05, 1.0)),
        min_size=1,
        max_size=5,
    ),
    some.integers(1, 50),
)
def test_due_times_never_decrease_and_do_not_depend_on_the_size_of_blocks(
    segments: list[tuple[int, int, float]], block: int
) -> None:
    text = ",".join(f"{first}..{last}@{seconds!r}" for first, last, seconds in segments)
    made = settings(text)
    whole = due_times(made)
    assert whole[0] == 0
    assert (np.diff(whole) >= 0).all()
    shape = made.arriving.shape
    assert shape is not None
    assert made.orders_per_s is not None
    shaped = Shaped(1e9 / made.orders_per_s, shape)
    size = min(block, len(whole))
    part = np.zeros(size, np.int64)
    earlier = len(whole) - size
    shaped.write(part, earlier)
    assert part.tolist() == whole[earlier:].tolist()


@pytest.mark.parametrize("text", ["1000@", "@10s", "1000@0s", "0@10s", "1000,2000@1s", "1..2", "fast@10s", "1@1s,"])
def test_a_load_that_is_not_possible_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="RATE@TIME"):
        LoadShape.parse(text)
