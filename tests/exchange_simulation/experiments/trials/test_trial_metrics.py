"""Metrics, which are read from a run's record."""

from __future__ import annotations

from typing import Any

import pytest

from exchange.settings import RunSettings
from exchange_simulation.launching.metrics import COMPARISON_METRICS

METRICS = {metric.name: metric for metric in COMPARISON_METRICS}
USED = {"cpu_s": 2.0, "max_rss_bytes": 150_000_000}
USED |= {"voluntary_context_switches": 900, "involuntary_context_switches": 100}
RECORD: dict[str, Any] = {"components": {"engine": USED}, "counts": {"orders_answered": 1_000}}


@pytest.mark.parametrize(
    ("name", "value"),
    [("engine_cpu_s_per_million", 2_000.0), ("engine_peak_mb", 150.0), ("engine_switches_per_order", 1.0)],
)
def test_usage_metrics_are_per_order_or_peaks(name: str, value: float) -> None:
    assert METRICS[name].read(RECORD) == pytest.approx(value)
    assert METRICS[name.replace("engine", "broker")].read(RECORD) is None
    assert METRICS[name].read({}) is None


def test_every_metric_has_a_name_of_its_own() -> None:
    assert len(METRICS) == len(COMPARISON_METRICS)


@pytest.mark.parametrize(
    ("settings", "judged"),
    [
        ({"orders": 1_000}, False),  # the last order's answer waits for nobody, so 999 are measured
        ({"orders": 1_001}, True),
        ({"orders": 501, "pairs": 2}, True),
        ({"orders": 2_000, "warm_up_s": 0.1}, False),  # the whole first second is left out
        ({"orders": 2_001, "warm_up_s": 0.1}, True),
        ({"orders": 2_000, "orders_per_s": None}, False),
        ({"orders": 80_000, "duration_s": 1.0}, False),  # the run ends with the lesser of both
        ({"orders": 1_001, "gateways": 2}, False),  # two last orders
        ({"orders": 1_002, "gateways": 2}, True),
        ({"orders": None, "duration_s": 1.5, "arrivals": "steps:0.5@1,1@1"}, False),
        ({"orders": None, "duration_s": 1.6, "arrivals": "steps:0.5@1,1@1"}, True),
        ({"orders": None, "duration_s": 2.0, "arrivals": "steps:0.5@1,1@1", "warm_up_s": 1.0}, False),
        ({"orders": None, "duration_s": 2.1, "arrivals": "steps:0.5@1,1@1", "warm_up_s": 1.0}, True),
    ],
)
def test_a_p99_is_judged_if_ten_of_the_measured_orders_are_slower(settings: dict[str, Any], judged: bool) -> None:
    given = RunSettings(**{"transport": "tcp", "orders_per_s": 1_000.0, **settings})
    assert METRICS["due_p99_us"].judged(given) is judged


def test_the_delivery_of_market_data_is_judged_where_there_are_subscribers() -> None:
    metric = METRICS["delivery_p99_us"]
    assert metric.read({"market_data": {"delivery_us": {"p99": 700.0}}}) == 700.0
    assert metric.read({}) is None
    assert metric.judged(RunSettings(orders=1, subscribers=8))
    assert not metric.judged(RunSettings(orders=1))
