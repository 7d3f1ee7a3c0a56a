"""Metrics of a run: each reads one number out of a record."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from exchange.json_records import Record
from exchange.measurements import LEAST_ORDERS
from exchange.settings import RunSettings

Read = Callable[[Record], float | None]

COMPONENTS = ("gateway", "engine", "broker", "reporter")
PERCENTILES = {"p50": "p50", "p90": "p90", "p99": "p99", "p999": "p99.9", "mean": "mean", "max": "maximum"}
CLOCKS = {"due": "from due time", "handed_over": "from handing over"}


def never(_settings: RunSettings) -> bool:
    return False


def scheduled(settings: RunSettings) -> bool:
    """True if orders have a due time, which completion can be measured from, and all arms get the same load."""
    return settings.orders_per_s is not None


def scheduled_orders(least: int) -> Callable[[RunSettings], bool]:
    """Whether orders have a due time, and a run measures so many of them: not the warm-up's, nor each pair's last."""

    def judged(settings: RunSettings) -> bool:
        rate = settings.orders_per_s or 0.0
        orders = settings.orders or rate * (settings.duration_s or 0.0)
        return scheduled(settings) and settings.pairs * (orders - rate * settings.warm_up_s - 1) >= least

    return judged


@dataclass(frozen=True, kw_only=True)
class Metric:
    """A number of a run. `judged` says for which settings it gets a verdict: each verdict costs the others power."""

    name: str
    title: str
    unit: str
    read: Read
    judged: Callable[[RunSettings], bool] = never
    says: str = ""
    """A verdict's sentence, in which `larger` and `smaller` are arms and `times` is their ratio."""


def number_at(*path: str) -> Read:
    """Reads the number at that path of a record; None where it was not measured."""
    return lambda record: _number(record, *path)


def orders_measured(record: Record) -> float | None:
    """The number of orders that the completion percentiles are of."""
    due, handed_over = (_number(record, "completion_us", clock, "count") for clock in CLOCKS)
    return handed_over if due is None else due


def messages_per_s(record: Record) -> float | None:
    """Orders and answers together."""
    orders, answers = (_number(record, "rates", name) for name in ("orders_per_s", "answers_per_s"))
    return None if orders is None or answers is None else orders + answers


def cpu_percent(component: str) -> Read:
    """CPU time in percent of a core, over the run's length."""

    def read(record: Record) -> float | None:
        cpu_s, duration_s = _number(record, "components", component, "cpu_s"), _number(record, "duration_s")
        return 100 * cpu_s / duration_s if cpu_s is not None and duration_s else None

    return read


def cpu_s_per_million(*components: str) -> Read:
    """CPU seconds per million answered orders, of those components that the run had; None where it had none."""

    def read(record: Record) -> float | None:
        used = [cpu_s for name in components if (cpu_s := _number(record, "components", name, "cpu_s")) is not None]
        orders = _number(record, "counts", "orders_answered")
        return sum(used) / orders * 1e6 if used and orders else None

    return read


def peak_mb(component: str) -> Read:
    """A component's peak memory, in millions of bytes."""

    def read(record: Record) -> float | None:
        peak = _number(record, "components", component, "max_rss_bytes")
        return None if peak is None else peak / 1e6

    return read


def switches_per_order(component: str) -> Read:
    """Context switches per answered order: voluntary ones (it slept) and involuntary ones (it had to wait)."""

    def read(record: Record) -> float | None:
        kinds = [_number(record, "components", component, f"{kind}voluntary_context_switches") for kind in ("", "in")]
        orders = _number(record, "counts", "orders_answered")
        return None if None in kinds or not orders else sum(kind or 0.0 for kind in kinds) / orders

    return read


def _number(record: Record, *path: str) -> float | None:
    """The number at that path of the record; None where it was not measured."""
    found: Any = record
    for name in path:
        found = found.get(name) if isinstance(found, dict) else None
    return float(found) if isinstance(found, int | float) and not isinstance(found, bool) else None


def packets(field: str) -> Read:
    """A figure of all packets of orders and answers, pure acknowledgements included; see runs/packets/rows.py."""

    def read(record: Record) -> float | None:
        from runs.packets.rows import exchange_total

        total = exchange_total(record)
        return None if total is None else getattr(total, field)

    return read


def _completion(clock: str, percentile: str, judged: frozenset[str]) -> Metric:
    return Metric(
        name=f"{clock}_{percentile}_us",
        title=f"completion {PERCENTILES[percentile]} {CLOCKS[clock]}",
        unit="us",
        read=number_at("completion_us", clock, percentile),
        judged=scheduled_orders(LEAST_ORDERS.get(percentile, 1)) if clock == "due" and percentile in judged else never,
        says="{smaller} is {times} times faster than {larger}",
    )


def _resources(component: str) -> tuple[Metric, ...]:
    cpu, memory, switches = (f"{component}_{what}" for what in ("cpu_s_per_million", "peak_mb", "switches_per_order"))
    return (
        Metric(name=cpu, title=f"CPU of the {component}", unit="CPU s per million orders",
               read=cpu_s_per_million(component)),
        Metric(name=memory, title=f"peak memory of the {component}", unit="MB", read=peak_mb(component)),
        Metric(name=switches, title=f"context switches of the {component}", unit="an order",
               read=switches_per_order(component)),
    )  # fmt: skip


PAPER_METRICS = (
    Metric(name="answers_per_s", title="answers", unit="answers/s", read=number_at("rates", "answers_per_s")),
    *(
        Metric(
            name=f"{name}_cpu_percent",
            title=f"CPU utilisation of the {name}",
            unit="% of a core",
            read=cpu_percent(name),
        )
        for name in ("gateway", "engine", "broker")
    ),
)
"""Metrics of the paper's figures 8 (a) and 9."""


def _completions(*judged: str) -> tuple[Metric, ...]:
    """All completion metrics; the percentiles named get a verdict, from due time."""
    return tuple(_completion(clock, percentile, frozenset(judged)) for clock in CLOCKS for percentile in PERCENTILES)


COMPARISON_METRICS = (
    *_completions("p50", "p99"),
    Metric(name="orders_per_s", title="achieved rate", unit="orders/s",
           read=number_at("rates", "orders_per_s"), judged=lambda settings: settings.orders_per_s is None,
           says="{larger} carries {times} times as many orders as {smaller}"),
    Metric(name="messages_per_s", title="messages, both ways", unit="messages/s", read=messages_per_s),
    Metric(name="cpu_s_per_million", title="CPU of all components", unit="CPU s per million orders",
           read=cpu_s_per_million(*COMPONENTS), judged=lambda _: True,
           says="{larger} takes {times} times the CPU of {smaller}"),
    *(metric for component in COMPONENTS for metric in _resources(component)),
    *PAPER_METRICS,
)  # fmt: skip
"""Metrics of a comparison of transports."""
NAGLE_METRICS = (
    *_completions("mean", "p50"),
    Metric(name="packets_per_order", title="packets an order", unit="packets", read=packets("per_order")),
    Metric(name="packet_bytes", title="mean size of a packet", unit="bytes of payload", read=packets("mean_bytes")),
    Metric(name="packet_gap_us", title="mean gap between packets", unit="us", read=packets("mean_gap_us")),
    *(replace(metric, judged=never) for metric in COMPARISON_METRICS if not metric.name.endswith("_us")),
)
"""Metrics of an experiment with Nagle's algorithm."""
