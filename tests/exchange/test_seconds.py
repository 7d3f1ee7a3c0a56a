"""The seconds of a run, as all readers of its records understand them."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from exchange.measurements import NS_PER_S, LogBuckets
from exchange.seconds import (
    History,
    Once,
    SourceInterval,
    SourceReading,
    is_analysed,
    is_full,
    merged,
    merged_by,
    rates_of,
    sum_by_name,
)


def completion(*times_ns: int, last_order: bool = False) -> dict[str, object]:
    """Return the payload of a completion record."""
    return {"last_order": last_order, **LogBuckets.of(np.array(times_ns, np.int64)).sparse()}


def reading(at_s: float, cpu_s: float = 0.0) -> SourceReading:
    return SourceReading(round(at_s * NS_PER_S), cpu_s)


def interval(length_s: float, cpu_s: float = 0.0) -> SourceInterval:
    return SourceInterval(round(length_s * NS_PER_S), cpu_s)


def test_a_repeated_line_is_not_new() -> None:
    once = Once()
    assert [once.is_new(line) for line in (b"a", b"b", b"a", b"c", b"b")] == [True, True, False, True, False]


def test_the_last_order_and_a_second_without_answers_are_not_analysed() -> None:
    assert is_analysed(completion(100))
    assert not is_analysed(completion(100, last_order=True))
    assert not is_analysed(completion())


def test_merged_payloads_have_the_figures_of_all_times() -> None:
    total = merged([completion(100, 2_000), completion(3), completion()])
    assert total.figures_us() == LogBuckets.of(np.array([100, 2_000, 3])).figures_us()
    by_name = merged_by([("a", completion(100)), ("b", completion(7)), ("a", completion(2_000))])
    assert {name: buckets.count for name, buckets in by_name.items()} == {"a": 2, "b": 1}


def test_a_last_second_with_under_a_tenth_of_the_usual_orders_is_not_full() -> None:
    assert not is_full(9, [100, 80, 100])
    assert is_full(8, [80, 70, 99])
    assert is_full(1, [])


def test_a_second_after_a_gap_counts_from_the_previous_reading() -> None:
    history = History()
    history.put(0, reading(7.0, 0.5))
    history.put(3, reading(10.5, 2.25))
    assert history.interval_ending(0) == interval(1.0, 0.5), "the first second counts from the start of the clock"
    assert history.interval_ending(1) is None
    assert history.interval_ending(3) == interval(3.5, 1.75)
    assert history.whole_interval() == interval(4.5, 2.25)
    assert history.last == 3
    assert history.after(0) == 3
    assert history.after(3) is None


def test_a_restarted_source_counts_its_cpu_from_zero() -> None:
    history = History()
    for second, cpu_s in enumerate([0.5, 1.0, 0.25, 0.75]):
        history.put(second, reading(7.0 + second, cpu_s))
    for second, cpu_s in enumerate([0.5, 0.5, 0.25, 0.5]):
        assert history.interval_ending(second) == interval(1.0, cpu_s)
    assert history.whole_interval() == interval(4.0, 1.75)


def test_the_only_second_of_a_short_run_is_as_long_as_the_run() -> None:
    history = History(duration_s=0.75)
    history.put(0, reading(9.0, 0.3))
    assert history.interval_ending(0) == interval(0.75, 0.3)


def test_the_latest_reading_of_a_second_counts() -> None:
    history = History()
    history.put(0, reading(7.0, 0.5))
    history.put(1, reading(8.0, 0.9))
    history.put(1, reading(7.9, 0.6))
    assert history.interval_ending(1) == interval(1.0, 0.9 - 0.5)


@given(st.permutations(range(5)))
def test_readings_may_come_in_any_order(seconds: list[int]) -> None:
    history = History()
    for second in seconds:
        history.put(second, reading(at_s=second + 1.25, cpu_s=0.5 * second))
    for second in range(1, 5):
        assert history.interval_ending(second) == interval(1.0, 0.5)


def test_less_than_half_a_second_is_too_short_for_a_rate() -> None:
    assert not interval(0.49).is_long_enough
    assert interval(0.5).is_long_enough


def test_a_rate_is_a_count_over_the_time_since_the_previous_reading() -> None:
    counts = {"orders_sent": 12, "orders_answered": 9, "messages_received": 21}
    rates = rates_of(counts, interval(1.5))
    assert rates == {"orders_per_s": 8.0, "answered_orders_per_s": 6.0, "answers_per_s": 14.0}
    assert rates_of(counts, interval(0.49)) == {}


def test_cores_are_cpu_seconds_over_the_time_that_passed() -> None:
    assert SourceInterval.between(reading(1.0, 0.5), reading(3.0, 2.0)).cores == 0.75


def test_missing_figures_add_nothing() -> None:
    assert sum_by_name([{"orders": 1, "answers": 2}, {}, {"orders": 3}]) == {"orders": 4, "answers": 2}
