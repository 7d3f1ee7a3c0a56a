"""From statistics records to the figures of the last minute."""

from __future__ import annotations

import pytest

from exchange_simulation.reports.live.figures import SECONDS, Figures
from tests.exchange_simulation.reports.live.spool_records import (
    Record,
    buckets,
    completion,
    figures_of,
    process,
    spool_record,
    traffic,
)


def last(figures: Figures, name: str, seconds: int) -> list[float | None]:
    """Return the values of the last seconds that every gateway has reported."""
    return figures.minutes[name].until(figures.newest, seconds)


def test_a_rate_is_over_the_time_that_passed_between_two_records() -> None:
    figures = figures_of(traffic(0, 8_000), traffic(1, 8_008, after_s=2.001), traffic(2, 7_992, after_s=3.0))
    assert last(figures, "orders_per_s", 3) == pytest.approx([8_000, 8_000, 8_000])
    assert last(figures, "answered_orders_per_s", 3) == pytest.approx([7_999, 8_007 / 1.001, 7_991 / 0.999])
    assert last(figures, "answers_per_s", 3) == pytest.approx([16_000, 16_000, 16_000])


def test_a_second_without_the_gateway_s_record_is_blank() -> None:
    """The next record's count is spread over all seconds since the record before."""
    figures = figures_of(traffic(0, 8_000), traffic(3, 24_000, after_s=4.0), traffic(4, 8_000))
    assert last(figures, "orders_per_s", 5) == [8_000, None, None, 8_000, 8_000]


def figures_of_run_until(end_s: float) -> Figures:
    """Return the figures of a run that ends in second 2."""
    return figures_of(
        traffic(0, 8_000),
        traffic(1, 8_000),
        process(0, "engine", 0.5),
        process(1, "engine", 1.0),
        traffic(2, 1_000, after_s=end_s),
        process(2, "engine", 1.06, after_s=end_s),
    )


def test_the_last_part_of_a_second_is_shown_if_long_enough() -> None:
    figures = figures_of_run_until(2.6)
    assert figures.newest == 2
    assert last(figures, "orders_per_s", 1) == pytest.approx([1_000 / 0.6])
    assert last(figures, "engine_cpu_cores", 1) == pytest.approx([0.06 / 0.6])


def test_a_last_part_too_short_for_a_rate_is_not_shown() -> None:
    figures = figures_of_run_until(2.4)
    assert figures.newest == 1
    assert last(figures, "orders_per_s", 1) == [8_000]
    assert last(figures, "engine_cpu_cores", 1) == [0.5]


def test_times_are_those_of_the_second_s_buckets_without_the_last_order() -> None:
    times_us = [100.0] * 980 + [500.0] * 19 + [9_000.0]
    figures = figures_of(
        traffic(0, 1_000), completion(0, "due", *times_us), completion(0, "due", 50_000.0, last_order=True)
    )
    expected = buckets(*times_us)
    assert last(figures, "due_p50_us", 1) == [expected.percentile_ns(50) / 1e3]
    assert last(figures, "due_p99_us", 1) == [expected.percentile_ns(99) / 1e3]
    assert last(figures, "due_max_us", 1) == [9_000.0]


def test_a_second_of_too_few_orders_has_no_p99() -> None:
    figures = figures_of(traffic(0, 999), completion(0, "due", *[100.0] * 999))
    assert last(figures, "due_p99_us", 1) == [None]
    assert last(figures, "due_max_us", 1) == [100.0]


def test_two_records_of_one_second_are_added() -> None:
    figures = figures_of(
        traffic(0, 8_000),
        process(0, "engine", 0.5),
        traffic(1, 1, after_s=1.9),
        completion(1, "due", 1.0),
        process(1, "engine", 0.6, after_s=1.9),
        traffic(1, 4_000),
        completion(1, "due", 300.0),
        process(1, "engine", 0.9),
    )
    assert last(figures, "orders_per_s", 3) == [None, 8_000, 4_001]
    assert last(figures, "due_max_us", 2) == [None, 300.0]
    assert last(figures, "engine_cpu_cores", 2) == pytest.approx([0.5, 0.4])


def test_cores_in_use_are_the_growth_of_cpu_time_per_second() -> None:
    figures = figures_of(
        traffic(1, 8_000),
        process(0, "gateway", 0.5),
        process(1, "gateway", 1.0),
        process(0, "engine", 0.2),
        process(1, "engine", 0.8, after_s=3.0),
        process(1, "reporter", 0.02),
    )
    assert last(figures, "gateway_cpu_cores", 2) == [0.5, 0.5]
    assert last(figures, "engine_cpu_cores", 2) == pytest.approx([0.2, 0.3])
    assert last(figures, "reporter_cpu_cores", 2) == [None, 0.01]


def test_records_that_are_not_drawn_are_ignored() -> None:
    end = spool_record("reporter", "end", 0)
    throughput = spool_record("engine", "throughput", 0, meter=2, rate_per_s=1)
    assert figures_of(end, throughput).newest == -1


def test_no_more_than_the_last_minute_stays_in_memory() -> None:
    figures = figures_of(*(traffic(second, second) for second in range(1_000)))
    history = figures.minutes["orders_per_s"]
    assert len(history._values) == SECONDS
    assert history.until(999) == pytest.approx(list(range(940, 1_000)))


def gateway_records(second: int, source: str, sent: int, *times_us: float) -> list[Record]:
    return [traffic(second, sent, source=source), completion(second, "due", *times_us, source=source)]


PAIR_1 = [*gateway_records(0, "gateway", 8_000, 100.0, 100.0), process(0, "engine", 0.5)]
PAIR_2 = [*gateway_records(0, "gateway.2", 6_000, 100.0, 9_000.0), process(0, "engine.2", 0.25)]


def test_a_second_is_shown_once_every_gateway_reported_it() -> None:
    assert figures_of(*PAIR_1, gateways=2).newest == -1
    next_second_of_pair_1 = gateway_records(1, "gateway", 8_000, 1.0)
    assert figures_of(*PAIR_1, *PAIR_2, *next_second_of_pair_1, gateways=2).newest == 0


def test_the_figures_of_several_gateways_are_added() -> None:
    figures = figures_of(*PAIR_1, *PAIR_2, gateways=2)
    times_of_both = buckets(100.0, 100.0, 100.0, 9_000.0)
    assert last(figures, "orders_per_s", 1) == [14_000]
    assert last(figures, "engine_cpu_cores", 1) == [0.75]
    assert last(figures, "due_p50_us", 1) == [times_of_both.percentile_ns(50) / 1e3]
    assert last(figures, "due_max_us", 1) == [9_000.0]


def test_a_gateway_that_has_ended_delays_no_second() -> None:
    ended = traffic(0, 8_000, source="gateway.2")
    figures = figures_of(ended, *(traffic(second, 8_000) for second in range(3)), gateways=2)
    assert figures.newest == 2
    assert last(figures, "orders_per_s", 3) == [16_000, 8_000, 8_000]
