"""What a second of a run is, whoever reads its records."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exchange.measurements import NS_PER_S, LogBuckets
from exchange.seconds import (
    History,
    Once,
    Reading,
    added,
    is_analysed,
    is_full,
    merged,
    merged_by,
    rates_of,
)


def completion(*times_ns: int, last_order: bool = False) -> dict[str, object]:
    return {"last_order": last_order, **LogBuckets.of(np.array(times_ns, np.int64)).sparse()}


def reading(at_s: float, cpu_s: float = 0.0) -> Reading:
    return Reading(round(at_s * NS_PER_S), cpu_s)


def test_a_line_is_new_once() -> None:
    once = Once()
    assert [once.is_new(line) for line in (b"a", b"b", b"a", b"c", b"b")] == [True, True, False, True, False]


def test_the_last_order_and_a_second_without_answers_are_not_analysed() -> None:
    payloads = (completion(100), completion(100, last_order=True), completion())
    assert list(map(is_analysed, payloads)) == [True, False, False]


def test_merged_payloads_are_the_histogram_of_all_their_times() -> None:
    everything = merged([completion(100, 2_000), completion(3), completion()])
    assert everything.figures_us() == LogBuckets.of(np.array([100, 2_000, 3])).figures_us()
    by_name = merged_by([("a", completion(100)), ("b", completion(7)), ("a", completion(2_000))])
    assert {name: buckets.count for name, buckets in by_name.items()} == {"a": 2, "b": 1}


FEW = (9, [100, 80, 100], False)


@pytest.mark.parametrize(("last", "others", "full"), [FEW, (8, [80, 70, 99], True), (1, [], True)])
def test_a_last_second_with_under_a_tenth_of_the_usual_orders_is_not_full(
    last: int, others: list[int], full: bool
) -> None:
    assert is_full(last, others) is full


def test_a_late_second_counts_from_the_reading_before_it() -> None:
    """The first second counts from the start of the clock."""
    history = History()
    for second, at_s, cpu_s in ((0, 7.0, 0.5), (3, 10.5, 2.25)):
        history.put(second, reading(at_s, cpu_s))
    assert [history.grown(second) for second in (0, 1, 3)] == [reading(1.0, 0.5), None, reading(3.5, 1.75)]
    assert history.whole() == reading(4.5, 2.25)
    assert (history.last, history.after(0), history.after(3)) == (3, 3, None)


def test_a_source_that_was_started_again_counts_cpu_from_zero() -> None:
    history = History()
    for second, cpu_s in enumerate((0.5, 1.0, 0.25, 0.75)):
        history.put(second, reading(7.0 + second, cpu_s))
    assert [history.grown(second) for second in range(4)] == [reading(1.0, cpu_s) for cpu_s in (0.5, 0.5, 0.25, 0.5)]
    assert history.whole() == reading(4.0, 1.75)


def test_the_only_second_of_a_short_run_is_as_long_as_the_run() -> None:
    history = History(duration_s=0.75)
    assert history.put(0, reading(9.0, 0.3)) == reading(0.75, 0.3)


def test_of_several_readings_of_a_second_the_latest_counts() -> None:
    history = History()
    history.put(0, reading(7.0, 0.5))
    assert history.put(1, reading(8.0, 0.9)) == history.put(1, reading(7.9, 0.6))


@given(st.permutations([(second, second + 1.25, 0.5 * second) for second in range(5)]))
def test_readings_may_come_in_any_order(readings: list[tuple[int, float, float]]) -> None:
    history = History()
    for second, at_s, cpu_s in readings:
        history.put(second, reading(at_s, cpu_s))
    assert [history.grown(second) for second in range(1, 5)] == [reading(1.0, 0.5)] * 4


@pytest.mark.parametrize(("length_s", "long_enough"), [(0.49, False), (0.5, True)])
def test_under_half_a_second_there_is_no_rate(length_s: float, long_enough: bool) -> None:
    assert reading(length_s).is_long_enough is long_enough


def test_a_rate_is_a_count_over_the_time_since_the_reading_before() -> None:
    counts = {"orders_sent": 12, "orders_answered": 9, "messages_received": 21}
    rates = rates_of(counts, reading(1.5))
    assert rates == {"orders_per_s": 8.0, "answered_orders_per_s": 6.0, "answers_per_s": 14.0}
    assert rates_of(counts, reading(0.49)) == {}


def test_cores_are_cpu_seconds_over_the_time_that_passed() -> None:
    assert reading(3.0, 2.0).since(reading(1.0, 0.5)).cores == 0.75


def test_figures_are_added_where_there_are_any() -> None:
    assert added([{"orders": 1, "answers": 2}, {}, {"orders": 3}]) == {"orders": 4, "answers": 2}
