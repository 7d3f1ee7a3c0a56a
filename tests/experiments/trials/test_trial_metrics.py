"""Numbers that are read out of a run's record."""

from __future__ import annotations

from typing import Any

import pytest

from runs.metrics import COMPARISON_METRICS

METRICS = {metric.name: metric for metric in COMPARISON_METRICS}
USED = {"cpu_s": 2.0, "max_rss_bytes": 150_000_000}
USED |= {"voluntary_context_switches": 900, "involuntary_context_switches": 100}
RECORD: dict[str, Any] = {"components": {"engine": USED}, "counts": {"orders_answered": 1_000}}


@pytest.mark.parametrize(
    ("name", "value"),
    [("engine_cpu_s_per_million", 2_000.0), ("engine_peak_mb", 150.0), ("engine_switches_per_order", 1.0)],
)
def test_what_a_component_used_is_told_by_order_or_at_its_most(name: str, value: float) -> None:
    assert METRICS[name].read(RECORD) == pytest.approx(value)
    assert METRICS[name.replace("engine", "broker")].read(RECORD) is None
    assert METRICS[name].read({}) is None


def test_every_metric_has_a_name_of_its_own() -> None:
    assert len(METRICS) == len(COMPARISON_METRICS)
