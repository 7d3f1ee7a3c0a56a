"""The metrics of a run. A metric reads one number from the run's record."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from exchange.json_records import Record
from exchange.percentiles import LABELS, LEAST_ORDERS
from exchange.settings import RunSettings

Read = Callable[[Record], float | None]

COMPONENTS = ("gateway", "engine", "broker", "reporter")
FIGURE_TITLES = {**LABELS, "mean": "mean", "max": "maximum"}
CLOCKS = {"due": "from due time", "handed_over": "from handing over"}


def is_never_judged(_settings: RunSettings) -> bool:
    """Return False: a metric with this function never gets a verdict."""
    return False


def scheduled_orders(least: int) -> Callable[[RunSettings], bool]:
    """Return a function of settings. It returns True if orders have due times, and a run measures at least `least`."""

    def judged(settings: RunSettings) -> bool:
        return settings.orders_per_s is not None and expected_orders_measured(settings) >= least

    return judged


def expected_orders_measured(settings: RunSettings) -> int:
    """Return how many orders a run will measure: the `orders_measured` of its record, if all orders are answered.

    The orders of the warm-up, whose seconds are rounded up, and the last order of each gateway are not measured. With
    random or recorded arrivals the number is a mean. Without a rate the orders of the warm-up are unknown, and counted.
    """
    orders_of_pair = settings.order_limit - _orders_in_warm_up(settings)
    measured = settings.pairs * orders_of_pair - unmeasured_orders(settings)
    return max(0, math.floor(round(measured, 6)))


def unmeasured_orders(settings: RunSettings) -> int:
    """Return how many orders no figure counts, besides those of the warm-up: the last order of each gateway."""
    return max(settings.pairs, settings.gateways)


def _orders_in_warm_up(settings: RunSettings) -> float:
    """Return how many orders of a pair are due in the warm-up; 0 without a rate."""
    length_s = settings.length_s
    if settings.orders_per_s is None or length_s is None:
        return 0.0
    warm_up_s = min(math.ceil(settings.warm_up_s), length_s)
    return settings.orders_per_s * settings.arriving.share_seconds(warm_up_s, length_s)


@dataclass(frozen=True, kw_only=True)
class Metric:
    """A number of a run."""

    name: str
    title: str
    unit: str
    read: Read
    judged: Callable[[RunSettings], bool] = is_never_judged
    """Returns whether the metric gets a verdict in runs with these settings. Each verdict costs the others power."""
    says: str = ""
    """The sentence of a verdict, in which {larger} and {smaller} are arms and {times} is their ratio."""


def number_at(*path: str, unit: float = 1.0) -> Read:
    """Return a function that reads the number at a path of a record, in this unit; None if it was not measured."""

    def read(record: Record) -> float | None:
        value: Any = record
        for name in path:
            value = value.get(name) if isinstance(value, dict) else None
        if not isinstance(value, int | float) or isinstance(value, bool):
            return None
        return value / unit

    return read


def total(*parts: Read, may_lack: bool = False) -> Read:
    """Return a function that sums numbers. The sum is None if a number is missing; with `may_lack`, if all are."""

    def read(record: Record) -> float | None:
        numbers = [part(record) for part in parts]
        measured = [number for number in numbers if number is not None]
        if not measured:
            return None
        if len(measured) < len(parts) and not may_lack:
            return None
        return sum(measured)

    return read


def ratio(above: Read, below: Read, times: float = 1.0) -> Read:
    """Return a function that divides two numbers, times `times`; None if a number is missing, or `below` is 0."""

    def read(record: Record) -> float | None:
        numerator = above(record)
        denominator = below(record)
        if numerator is None or not denominator:
            return None
        return numerator / denominator * times

    return read


def percent(part: Read, whole: Read) -> Read:
    """Return a function that reads `part` in percent of `whole`; None if one of them is missing, or `whole` is 0."""
    return ratio(part, whole, times=100.0)


def orders_measured(record: Record) -> float | None:
    """Return the number of orders whose completion times are in the percentiles.

    `expected_orders_measured` says before a run how many there will be.
    """
    from_due = number_at("completion_us", "due", "count")(record)
    if from_due is not None:
        return from_due
    return number_at("completion_us", "handed_over", "count")(record)


def used_by(component: str, field: str, unit: float = 1.0) -> Read:
    """Return a function that reads a field of a component's use of the machine."""
    return number_at("components", component, field, unit=unit)


ORDERS_ANSWERED = number_at("counts", "orders_answered")


def packets(field: str) -> Read:
    """Return a function that reads a figure of all packets of orders and answers, pure acknowledgements included."""

    def read(record: Record) -> float | None:
        from exchange_simulation.launching.packets.rows import exchange_total

        total_of_run = exchange_total(record)
        return None if total_of_run is None else getattr(total_of_run, field)

    return read


def _completion(clock: str, figure: str, judged_figures: frozenset[str]) -> Metric:
    if clock == "due" and figure in judged_figures:
        judged = scheduled_orders(LEAST_ORDERS.get(figure, 1))
    else:
        judged = is_never_judged
    return Metric(
        name=f"{clock}_{figure}_us",
        title=f"completion {FIGURE_TITLES[figure]} {CLOCKS[clock]}",
        unit="us",
        read=number_at("completion_us", clock, figure),
        judged=judged,
        says="{smaller} is {times} times faster than {larger}",
    )


def _cpu_s_per_million(*components: str) -> Read:
    """Return a function that reads CPU seconds per million answered orders, of the components that a run has."""
    cpu_s = total(*(used_by(name, "cpu_s") for name in components), may_lack=True)
    return ratio(cpu_s, ORDERS_ANSWERED, times=1e6)


def _resources(component: str) -> tuple[Metric, ...]:
    """Return the metrics of a component's use of the machine.

    A context switch is voluntary if the component slept, and involuntary if another process took its processor.
    """
    switches = total(
        used_by(component, "voluntary_context_switches"), used_by(component, "involuntary_context_switches")
    )
    return (
        Metric(
            name=f"{component}_cpu_s_per_million",
            title=f"CPU of the {component}",
            unit="CPU s per million orders",
            read=_cpu_s_per_million(component),
        ),
        Metric(
            name=f"{component}_peak_mb",
            title=f"peak memory of the {component}",
            unit="MB",
            read=used_by(component, "max_rss_bytes", unit=1e6),
        ),
        Metric(
            name=f"{component}_switches_per_order",
            title=f"context switches of the {component}",
            unit="an order",
            read=ratio(switches, ORDERS_ANSWERED),
        ),
    )


SAMPLED_METRICS = tuple(
    Metric(
        name=f"sampled_{figure}", title=f"{title} by the sampled meters", unit=unit, read=number_at("sampled", figure)
    )
    for figure, title, unit in (
        ("orders_sent_per_s", "orders sent", "orders/s"),
        ("orders_received_per_s", "orders received", "orders/s"),
        ("messages_sent_per_s", "answers sent", "answers/s"),
        ("messages_received_per_s", "answers received", "answers/s"),
        ("handed_over_mean_us", "completion mean from handing over", "us"),
    )
)
"""Metrics of figures 8 (a) to (c) as the paper has them: means of samples alone."""
PAPER_METRICS = (
    Metric(name="answers_per_s", title="answers", unit="answers/s", read=number_at("rates", "answers_per_s")),
    Metric(
        name="mean_message_bytes",
        title="mean size of orders and answers",
        unit="bytes",
        read=number_at("mean_message_bytes"),
    ),
    *(
        Metric(
            name=f"{name}_cpu_percent",
            title=f"CPU utilisation of the {name}",
            unit="% of a core",
            read=percent(used_by(name, "cpu_s"), number_at("duration_s")),
        )
        for name in ("gateway", "engine", "broker")
    ),
    *SAMPLED_METRICS,
)
"""Metrics of the paper's section 5.2, and of its figures 8 (a) and 9."""


def _completions(*judged_figures: str) -> tuple[Metric, ...]:
    """Return all completion metrics. The `judged_figures`, from due time, get a verdict."""
    metrics = []
    for clock in CLOCKS:
        for figure in FIGURE_TITLES:
            metrics.append(_completion(clock, figure, frozenset(judged_figures)))
    return tuple(metrics)


DELIVERY_METRICS = tuple(
    Metric(
        name=f"delivery_{figure}_us",
        title=f"delivery of market data, {FIGURE_TITLES[figure]}",
        unit="us",
        read=number_at("market_data", "delivery_us", figure),
        judged=(lambda settings: settings.subscribers > 0) if figure == "p99" else is_never_judged,
        says="{smaller} delivers market data {times} times faster than {larger}",
    )
    for figure in ("p50", "p99", "max")
)
"""Metrics of runs with subscribers."""

COMPARISON_METRICS = (
    *_completions("p50", "p99"),
    *DELIVERY_METRICS,
    Metric(
        name="orders_per_s",
        title="achieved rate",
        unit="orders/s",
        read=number_at("rates", "orders_per_s"),
        judged=lambda settings: settings.orders_per_s is None,
        says="{larger} carries {times} times as many orders as {smaller}",
    ),
    Metric(
        name="messages_per_s",
        title="messages, both ways",
        unit="messages/s",
        read=total(number_at("rates", "orders_per_s"), number_at("rates", "answers_per_s")),
    ),
    Metric(
        name="cpu_s_per_million",
        title="CPU of all components",
        unit="CPU s per million orders",
        read=_cpu_s_per_million(*COMPONENTS, "subscriber"),
        judged=lambda _: True,
        says="{larger} takes {times} times the CPU of {smaller}",
    ),
    *(metric for component in COMPONENTS for metric in _resources(component)),
    *PAPER_METRICS,
)
"""Metrics of a comparison of transports."""
_TIMES_OF_ORDERS = {metric.name for metric in (*_completions(), *DELIVERY_METRICS)}
_OTHER_METRICS = [metric for metric in COMPARISON_METRICS if metric.name not in _TIMES_OF_ORDERS]
NAGLE_METRICS = (
    *_completions("mean", "p50"),
    Metric(name="packets_per_order", title="packets an order", unit="packets", read=packets("per_order")),
    Metric(name="packet_bytes", title="mean size of a packet", unit="bytes of payload", read=packets("mean_bytes")),
    Metric(name="packet_gap_us", title="mean gap between packets", unit="us", read=packets("mean_gap_us")),
    *(replace(metric, judged=is_never_judged) for metric in _OTHER_METRICS),
)
"""Metrics of an experiment with Nagle's algorithm."""
