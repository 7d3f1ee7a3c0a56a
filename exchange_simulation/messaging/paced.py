"""`--rate`: benchmarks whose publishers are offered a load, one rate or rates over time; their figures from due."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from exchange.json_records import Record
from exchange.load_shape import LoadShape
from exchange.measurements import LogBuckets
from exchange.settings import MAX_RATE_PER_S
from exchange.unique import unique
from exchange_simulation.launching.errors import UserError
from exchange_simulation.launching.record.status import Offered
from exchange_simulation.messaging.benchmark import BenchmarkDefinition, CapacityScale, no_reasons
from exchange_simulation.messaging.cell import Cell, Figures, Results
from exchange_simulation.messaging.message_load import MessageLoad
from exchange_simulation.messaging.options import RATES, SECONDS
from exchange_simulation.messaging.point import MAX, RATE, Point, Settings
from exchange_simulation.messaging.presentation import Column, Plot
from exchange_simulation.messaging.roles import RoleResult, of_kind
from exchange_simulation.messaging.streams import figures_of_times, rates

PACED_COLUMNS = (
    Column("due_p50_us", "p50 us from due", with_interval=True),
    Column("due_p99_us", "p99 us from due"),
    Column("lag_p99_us", "lag p99 us"),
)
STEP_COLUMNS = (
    Column("offered_per_s", "offered/s"),
    Column("delivered_per_s", "delivered/s", with_interval=True),
    Column("due_p50_us", "p50 us from due", with_interval=True),
    Column("due_p99_us", "p99 us from due"),
    Column("due_max_us", "max us from due"),
    Column("lag_p99_us", "lag p99 us"),
)
"""The columns of a table with a row for each step of a load over time."""
PACED_PLOTS = (
    Plot("p50 from due, by a publisher's rate", "due_p50_us", "µs", x=RATE, x_unit="messages/s"),
    Plot("p99 from due, by a publisher's rate", "due_p99_us", "µs", x=RATE, x_unit="messages/s"),
)
RATE_SCALE = CapacityScale(
    option="rates",
    start=1_000,
    highest=MAX_RATE_PER_S,
    is_whole=False,
    unit="messages/s",
    ceiling_in_words="the rate at which a publisher can make messages",
    columns=("due_p50_us", "due_p99_us", "lag_p99_us", "broker_cores"),
)


def with_rates(declared: BenchmarkDefinition) -> BenchmarkDefinition:
    """The benchmark with `--rate`: each point at each rate, with latency from due, and the lag of the publishers."""
    has_sample = any(option.name == "sample_s" for option in declared.options)
    has_its_own_rule = declared.saturation_reasons is not no_reasons
    return replace(
        declared,
        points=lambda settings: _at_rates(declared.points(settings), settings),
        figures=lambda cell, results: _with_lag(cell, results, declared.figures(cell, results)),
        step_figures=step_figures,
        saturation_reasons=declared.saturation_reasons if has_its_own_rule else _fell_behind,
        options=(*declared.options, RATES, *(() if has_sample else (SECONDS,))),
        columns=(*declared.columns, *PACED_COLUMNS),
        plots=(*declared.plots, *PACED_PLOTS),
        scale=None if has_sample else RATE_SCALE,
    )


def _at_rates(points: Sequence[Point], settings: Settings) -> Sequence[Point]:
    """Each point at each rate. A point has no rate if all its messages are sent as fast as possible.

    UserError if the time between two messages is longer than a consumer waits, or if a load over time has no end.
    """
    rates: tuple[float | str | None, ...] = settings.get("rates") or (None,)  # None: as fast as possible
    if all(rate is None for rate in rates):
        return points
    points_at_rates: list[Point] = []
    for point in points:
        for rate in rates:
            points_at_rates.append({**point, RATE: _value_of_point(rate, settings)})
    return points_at_rates


def _value_of_point(rate: float | str | None, settings: Settings) -> float | str:
    """The rate as the user typed it: max, a whole number, a fraction, or a load that ends. UserError."""
    timeout_s = settings.get("timeout_s", math.inf)
    if rate is None:
        return MAX
    if isinstance(rate, str):
        shape = _ending_shape(LoadShape.parse(rate), settings)
        lowest = min(min(segment.first, segment.last) for segment in shape.segments)
        _check_slowest(lowest, timeout_s)
        return shape.typed
    _check_slowest(rate, timeout_s)
    return int(rate) if float(rate).is_integer() else rate


def _ending_shape(shape: LoadShape, settings: Settings) -> LoadShape:
    """A load over exactly `--seconds`, or as long as its segments. UserError if neither gives it an end."""
    seconds = settings.get("seconds")
    if seconds is not None:
        return shape.lasting(seconds)
    if shape.is_open:
        ends = "--seconds 30, or a last @TIME" if "seconds" in settings else "a last @TIME"
        raise UserError(f"--rate {shape.typed} has no end at {shape.segments[-1].first:,.10g}/s: give {ends}")
    return shape


def _check_slowest(rate_per_s: float, timeout_s: float) -> None:
    """UserError if the time between two messages is longer than a consumer waits."""
    interval_s = 1 / rate_per_s
    if interval_s >= timeout_s:
        raise UserError(
            f"--rate {rate_per_s:g} is a message every {interval_s:g} s, and a consumer gives up after {timeout_s:g} s "
            f"without one: raise --rate, or --timeout"
        )


def paced_senders(results: Results) -> list[RoleResult]:
    """The roles that sent messages when they were due."""
    return [result for result in results.values() if "lag" in result.details]


def load_of(sender: RoleResult) -> MessageLoad:
    """The load that a role was offered, as it wrote it down."""
    return MessageLoad(LoadShape.parse(sender.details["load"]), sender.sent)


def _with_lag(cell: Cell, results: Results, figures: Figures) -> Figures:
    """At a rate, latency counts from the due time, and figures of the publishers' lag are added."""
    if cell.load is None:
        return figures
    lags = LogBuckets.together(sender.details["lag"] for sender in paced_senders(results))
    from_due = {name.replace("latency_", "due_"): value for name, value in figures.items()}
    return from_due | figures_of_times(lags, "lag")


def step_figures(cell: Cell, results: Results) -> list[Record]:
    """The figures of each step of a load over time; empty for one rate.

    The rate of deliveries is that of the step's messages, between the arrivals of the first and the last of them.
    """
    senders = paced_senders(results)
    if cell.load is None or not senders:
        return []
    publishers = sum(sender.details.get("threads", 1) for sender in senders)
    steps = []
    for number, step in enumerate(load_of(senders[0]).steps):
        parts = [result.details["steps"][number] for result in results.values() if result.details.get("steps")]
        received = [part for part in parts if part.received]
        figures: Figures = {"offered_per_s": step.segment.mean * publishers}
        if received:
            span_ns = max(part.last_ns for part in received) - min(part.first_ns for part in received)
            delivered = rates(cell.size, sum(part.received for part in received) - 1, span_ns)
            if delivered:
                figures["delivered_per_s"] = delivered["messages_per_s"]
            figures |= figures_of_times(LogBuckets.together(part.latency for part in received), "due")
        lags = LogBuckets.together(sender.details["lag_by_step"][number] for sender in senders)
        steps.append({"step": step.segment.typed, "figures": figures | figures_of_times(lags, "lag")})
    return steps


def _fell_behind(cell: Cell, results: Results) -> list[str]:
    """Sentences if a publisher did not keep its rate, or its consumers did not keep up; equal sentences once."""
    if cell.load is None:
        return []
    reasons: list[str] = []
    for name, publisher in of_kind(results, "publisher").items():
        for consumer in _consumers_of(name, results):
            reasons += _offered(publisher, consumer).reasons_for_saturated()
    return unique(reasons)


def askers_fell_behind(cell: Cell, results: Results) -> list[str]:
    """Sentences if messages were not asked at their rate, since earlier ones had no answer yet."""
    if cell.load is None:
        return []
    return list(offered_of(paced_senders(results), growth=0, sender="the asker").reasons_for_saturated())


def _consumers_of(publisher: str, results: Results) -> list[RoleResult]:
    """The consumer with the publisher's number; all consumers if there is one publisher."""
    if len(of_kind(results, "publisher")) == 1:
        return list(of_kind(results, "consumer").values())
    return [results[publisher.replace("publisher", "consumer")]]


def _offered(publisher: RoleResult, consumer: RoleResult) -> Offered:
    """The load that was offered; its backlog grows by the messages due, less those received, in the last quarter."""
    (received_before, begin_ns), (received_after, end_ns) = consumer.details["last_quarter"]
    started_ns = publisher.details["started_ns"]
    due = load_of(publisher).due_between((begin_ns - started_ns) / 1e9, (end_ns - started_ns) / 1e9)
    growth = due - (received_after - received_before)
    return offered_of([publisher], int(growth))


def offered_of(publishers: Sequence[RoleResult], growth: int, sender: str = "the publisher") -> Offered:
    """The load that these publishers were offered together, and the growth of its backlog in the last quarter.

    The publisher that took longest says how long handing over took. `sender` names them in the reason of a lag.
    """
    slowest = max(publishers, key=lambda publisher: publisher.details["taken_s"] - publisher.details["given_s"])
    details: Mapping[str, Any] = slowest.details
    messages = sum(publisher.sent for publisher in publishers)
    mean_per_s = (slowest.sent - 1) / details["given_s"] if details["given_s"] else slowest.sent
    lags = LogBuckets.together(publisher.details["lag"] for publisher in publishers)
    return Offered(
        messages=messages,
        per_s=mean_per_s * len(publishers),
        schedule_s=details["given_s"],
        handing_over_s=details["taken_s"],
        lag_p99_us=lags.percentile_ns(99) / 1e3,
        backlog_growth=growth,
        noun="messages",
        backlog="undelivered messages",
        sender=sender,
    )
