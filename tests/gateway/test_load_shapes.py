"""Loads over time: due times are a function of the settings alone, and have the rate of each segment."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from click import UsageError
from hypothesis import given
from hypothesis import strategies as some

from exchange.load_shape import LoadShape
from exchange.settings import RunSettings
from exchange_simulation.launching.errors import UserError
from exchange_simulation.launching.transport_checks import check_warm_up
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


@pytest.mark.parametrize(
    ("arrivals", "by_second"),
    [
        ("steps:0.25..1@2", [875, 1625, 2000, 2000, 2000]),
        ("steps:1..0.25@2", [1625, 875, 500, 500, 500]),
        ("steps:0.5@1,1@1", [1000, 2000, 2000, 2000, 2000]),
    ],
)
def test_the_last_rate_goes_on_after_the_last_segment(arrivals: str, by_second: list[int]) -> None:
    """Regression: the slope of a last ramp went on, up to rates above the highest, or down to none."""
    orders = sum(by_second)
    made = RunSettings(orders_per_s=2000.0, arrivals=arrivals, orders=orders)
    assert orders_by_second(made) == pytest.approx(by_second, abs=1)
    assert made.length_s == pytest.approx(5.0, abs=0.001)


@pytest.mark.parametrize(
    ("load", "given", "orders", "length_s", "offered_orders_per_s"),
    [
        ("1000@10s,8000@10s", {"orders": 5_000}, 5_000, 5.0, 1_000),
        ("8000@10s,1000@10s", {"orders": 40_000}, 40_000, 5.0, 8_000),
        ("8000@2s,1000@2s", {"duration_s": 8.0}, 22_000, 8.0, 2_750),
        ("8000@2s,1000@2s", {"duration_s": 1.0}, 8_000, 1.0, 8_000),
        ("1000@10s,8000@10s", {"orders": 500_000}, 90_000, 20.0, 4_500),
    ],
)
def test_orders_length_and_offered_rate_follow_from_the_shape(
    load: str, given: dict[str, Any], orders: int, length_s: float, offered_orders_per_s: float
) -> None:
    """Regression: the mean of the whole shape was taken for the mean of a run that ends before the shape, or after."""
    made = settings(load, **given)
    assert made.order_limit == orders
    assert made.length_s == pytest.approx(length_s)
    assert made.offered_orders_per_s == pytest.approx(offered_orders_per_s)
    assert due_times(made)[-1] / 1e9 == pytest.approx(length_s, abs=0.002)


@pytest.mark.parametrize(
    ("arrivals", "duration_s", "orders"), [("0.1@10,1@10", 10.0, 8_000), ("0.1@2,1@2", 8.0, 49_600)]
)
def test_steps_end_after_the_duration(arrivals: str, duration_s: float, orders: int) -> None:
    """Regression: the number of orders was that of the whole shape's mean, due in 14.5 s of 10, and in 6.2 s of 8."""
    made = RunSettings(orders_per_s=8000.0, arrivals=f"steps:{arrivals}", orders=None, duration_s=duration_s)
    assert made.order_limit == orders
    assert made.length_s == pytest.approx(duration_s)
    assert due_times(made)[-1] / 1e9 == pytest.approx(duration_s, abs=0.002)


shapes = some.lists(
    some.tuples(some.floats(0.001, 1.0), some.floats(0.001, 1.0), some.floats(0.01, 2.0)), min_size=1, max_size=4
)


@given(shapes, some.floats(100, 5_000), some.integers(1, 20_000))
def test_each_order_is_due_when_the_load_so_far_is_the_orders_before_it(
    segments: list[tuple[float, float, float]], orders_per_s: float, orders: int
) -> None:
    text = ",".join(f"{first!r}..{last!r}@{seconds!r}" for first, last, seconds in segments)
    made = RunSettings(orders_per_s=orders_per_s, arrivals=f"steps:{text}", orders=orders)
    load = made.scheduled_load
    assert load is not None
    due_s = due_times(made) / 1e9
    for order in {0, orders // 2, orders - 1}:
        assert due_s[order] == pytest.approx(load.rates.seconds_until(order), rel=1e-6, abs=1e-6)
    assert due_s[-1] <= load.length_s * (1 + 1e-6)
    assert load.mean_per_s <= orders_per_s * (1 + 1e-6)


@given(shapes, some.floats(100, 5_000), some.floats(0.01, 10.0))
def test_a_run_lasts_as_long_as_its_duration(
    segments: list[tuple[float, float, float]], orders_per_s: float, duration_s: float
) -> None:
    text = ",".join(f"{first!r}..{last!r}@{seconds!r}" for first, last, seconds in segments)
    made = RunSettings(orders_per_s=orders_per_s, arrivals=f"steps:{text}", orders=None, duration_s=duration_s)
    longest_period_s = 1 / (0.001 * orders_per_s)
    assert made.length_s is not None
    assert duration_s * (1 - 1e-6) <= made.length_s <= duration_s + longest_period_s + 1e-6
    assert due_times(made)[-1] / 1e9 <= duration_s * (1 + 1e-6)


def test_a_warm_up_is_held_against_the_length_of_the_run_itself() -> None:
    """Regression: `--rate 1000@10s,8000@10s --orders 5000` was taken for 1.1 s, and the mirrored run for 8.9 s."""
    check_warm_up(settings("1000@10s,8000@10s", orders=5_000, warm_up_s=2.0))
    with pytest.raises(UserError, match="--warm-up 6 leaves nothing of a run of 5 s to analyse"):
        check_warm_up(settings("8000@10s,1000@10s", orders=40_000, warm_up_s=6.0))


def test_a_rate_under_a_thousandth_of_the_highest_is_refused_by_the_name_of_the_rate() -> None:
    """Regression: the error named --arrivals, which nobody had typed."""
    with pytest.raises(UsageError, match=r"--rate is 1@10,8000@10; allowed is rates from 8 on, a thousandth"):
        settings("1@10s,8k@10s")


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


@pytest.mark.parametrize(
    "text",
    [
        "1000@",
        "@10s",
        "inf@10s",
        "nan@10s",
        "1000..inf@10s",
        "1e999@10s",
        "1000@0s",
        "0@10s",
        "1000,2000@1s",
        "1..2",
        "fast@10s",
        "1@1s,",
    ],
)
def test_a_load_that_is_not_possible_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="RATE@TIME"):
        LoadShape.parse(text)
