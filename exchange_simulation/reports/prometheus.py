"""Figures as the text that Prometheus scrapes: samples with labels, each metric with its help and type."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from exchange.grouping import grouped
from exchange.json_records import Record
from exchange.percentiles import PERCENTILES
from exchange_simulation.launching.metrics import number_at
from exchange_simulation.launching.record.noise import noise_share
from exchange_simulation.launching.record.noise_summary import noise_of
from exchange_simulation.reports.formats.few_orders import has_enough_orders

HELP = {
    "exchange_run_completion_seconds": "Completion time of a run's orders, by clock and quantile.",
    "exchange_run_orders_per_second": "Orders that a run had answered a second.",
    "exchange_run_offered_orders_per_second": "Orders that were offered a second.",
    "exchange_run_cpu_seconds": "CPU time of a component.",
    "exchange_run_noise_share": "Share of all processors that others took during the run.",
    "exchange_run_status": "1 for the run's status.",
    "exchange_run_started_seconds": "When the run started, in seconds since 1970.",
    "exchange_arm_completion_seconds": "Median over repeats of an arm's completion time, by clock and quantile.",
    "exchange_arm_orders_per_second": "Median over repeats of the orders that were answered a second.",
    "exchange_comparison_is_noisy": "1 if most runs of the comparison were noisy.",
}
"""All metrics, which are gauges."""
METRICS_OF_RATES = {
    "orders_per_s": "exchange_run_orders_per_second",
    "offered_orders_per_s": "exchange_run_offered_orders_per_second",
}
"""By the name of a rate in run.json."""
CLOCKS = ("due", "handed_over")


@dataclass(frozen=True)
class Sample:
    """A value of a metric with its labels."""

    metric: str
    value: float
    labels: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        labels = ",".join(f'{name}="{_escaped(value)}"' for name, value in self.labels.items())
        return f"{self.metric}{{{labels}}} {self.value!r}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def samples_of_run(record: Record, started_s: float) -> Iterator[Sample]:
    """Yield the figures of run.json. A figure that was not measured is left out."""
    settings = record.get("settings") or {}
    offered = settings.get("orders_per_s")
    labels = {
        "run": str(record["name"]),
        "transport": str(settings.get("transport", "")),
        "rate": "max" if offered is None else f"{offered:.10g}",
    }
    for clock in CLOCKS:
        for percentile in PERCENTILES:
            us = number_at("completion_us", clock, percentile.name)(record)
            count = number_at("completion_us", clock, "count")(record)
            if us is not None and has_enough_orders(percentile.name, count):
                quantile = f"{percentile.percent / 100:.10g}"
                clock_labels = {**labels, "clock": clock, "quantile": quantile}
                yield Sample("exchange_run_completion_seconds", us / 1e6, clock_labels)
    for name, metric in METRICS_OF_RATES.items():
        per_s = number_at("rates", name)(record)
        if per_s is not None:
            yield Sample(metric, per_s, labels)
    for component, usage in (record.get("components") or {}).items():
        yield Sample("exchange_run_cpu_seconds", usage["cpu_s"], {**labels, "component": component})
    share = noise_share(record)
    if share is not None:
        yield Sample("exchange_run_noise_share", share, labels)
    yield Sample("exchange_run_status", 1.0, {**labels, "status": str(record["status"])})
    yield Sample("exchange_run_started_seconds", started_s, labels)


def samples_of_comparison(record: Record) -> Iterator[Sample]:
    """Yield the medians of comparison.json, without percentiles of which an arm's runs have too few orders.

    Contender and block name an arm: the arms of a sweep may differ in more than the rate.
    """
    name = str(record["name"])
    for arm in record["arms"]:
        offered = arm["settings"]["orders_per_s"]
        labels = {
            "comparison": name,
            "contender": str(arm["contender"]),
            "block": str(arm["block"]),
            "rate": "max" if offered is None else f"{offered:.10g}",
        }
        for clock in CLOCKS:
            for percentile in PERCENTILES:
                estimate = arm["metrics"].get(f"{clock}_{percentile.name}_us")
                if estimate and has_enough_orders(percentile.name, arm.get("orders_measured")):
                    quantile = f"{percentile.percent / 100:.10g}"
                    clock_labels = {**labels, "clock": clock, "quantile": quantile}
                    yield Sample("exchange_arm_completion_seconds", estimate["median"] / 1e6, clock_labels)
        achieved = arm["metrics"].get("orders_per_s")
        if achieved:
            yield Sample("exchange_arm_orders_per_second", achieved["median"], labels)
    yield Sample("exchange_comparison_is_noisy", float(noise_of(record).is_noisy), {"comparison": name})


def exposition(samples: Iterable[Sample]) -> str:
    """Return the text: all samples of a metric stand together, below its help and its type."""
    lines: list[str] = []
    for metric, samples_of_metric in grouped(samples, lambda sample: sample.metric).items():
        lines.append(f"# HELP {metric} {HELP[metric]}")
        lines.append(f"# TYPE {metric} gauge")
        lines += map(str, samples_of_metric)
    return "".join(f"{line}\n" for line in lines)
