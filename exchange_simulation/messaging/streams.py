"""Benchmarks of what flows one way: their roles, whether all came as it was sent, rates and latency."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import median

from exchange.measurements import LogBuckets
from exchange.settings import MAX_RATE_PER_S
from exchange_simulation.launching.errors import UserError
from exchange_simulation.launching.record.status import Offered
from exchange_simulation.messaging.benchmark import BenchmarkDefinition, CapacityScale
from exchange_simulation.messaging.cell import Cell, Figures, Results
from exchange_simulation.messaging.flow import Consume, ConsumeShared, Publish, rest_s
from exchange_simulation.messaging.options import RATES, SECONDS
from exchange_simulation.messaging.point import MAX, RATE, Point, Settings
from exchange_simulation.messaging.presentation import Column, Plot
from exchange_simulation.messaging.roles import LinkEnd, Links, Role, RoleResult, of_kind, stopped_in_words
from exchange_simulation.reports.formats.few_orders import has_enough_orders

LEAST_SPAN_NS = 10_000_000
"""A receiver's clock that ran for less tells no rate: a full buffer is drained faster than anything can be sent."""


@dataclass(frozen=True)
class Streams:
    """Independent streams of a publisher and a consumer each, which share nothing but broker and machine.

    Each publisher sends `count` messages of `size` bytes, and awaits one empty reply once its consumer has them.
    """

    count: Callable[[Cell], int]
    many: str = ""
    """The point's key for the number of streams; without it there is one stream."""
    size: Callable[[Cell], int] = lambda cell: cell.size
    median_rate_figure: str = ""
    """The name of the median of the streams' own rates, if it is a figure; it is left out unless all were timed."""

    def roles(self, cell: Cell, links: Links) -> list[Role]:
        roles: list[Role] = []
        size = self.size(cell)
        count = self.count(cell)
        for number in self._numbers(cell):
            listener, connector = links.pair(size, name=number.strip(), one_way=True)
            consume = Consume(size, count, cell.rate_per_s is None)
            publish = Publish(size, count, rate_per_s=cell.rate_per_s)
            roles.append(Role(f"consumer{number}", consume, (listener,)))
            roles.append(Role(f"publisher{number}", publish, (connector,), begins=True))
        return roles

    def _numbers(self, cell: Cell) -> list[str]:
        return _numbers(cell.point[self.many] if self.many else 1)

    def judge(self, cell: Cell, results: Results) -> list[str]:
        """Judge stream by stream, so that a message of another stream is noticed."""
        streams = [(f"publisher{number}", f"consumer{number}") for number in self._numbers(cell)]
        return [
            wrong
            for publisher, consumer in streams
            for wrong in wrong_with({publisher: results[publisher]}, {consumer: results[consumer]}, self.count(cell))
        ]

    def figures(self, cell: Cell, results: Results) -> Figures:
        size = self.size(cell)
        consumers = of_kind(results, "consumer").values()
        figures = published_figures(size, results)
        each = [flow_figures(size, [one]) for one in consumers]
        if not self.median_rate_figure or not all("messages_per_s" in own for own in each):
            return figures
        return {**figures, self.median_rate_figure: median(own["messages_per_s"] for own in each)}


def published_roles(
    cell: Cell, count: int, publisher: LinkEnd, subscribers: Sequence[LinkEnd], idle: Sequence[LinkEnd] = ()
) -> list[Role]:
    """One publisher, and a consumer at each subscriber's end, which replies once it has everything.

    A role that subscribes at an `idle` end is to get nothing.
    """
    many = len(subscribers)
    ends = zip(_numbers(len(subscribers)), subscribers, strict=True)
    idles = ConsumeShared(cell.size, 1, rest_s(len(idle)))
    consume = Consume(cell.size, count, cell.rate_per_s is None)
    publish = Publish(cell.size, count, many, subscribers=many + len(idle), rate_per_s=cell.rate_per_s)
    return [
        *(Role(f"idle {number}", idles, (end,), idles=True) for number, end in enumerate(idle, 1)),
        *(Role(f"consumer{number}", consume, (end,)) for number, end in ends),
        Role("publisher", publish, (publisher,), begins=True),
    ]


def wrong_with_published(results: Results, count: int) -> list[str]:
    """Sentences unless each consumer has everything, and a role that idles nothing."""
    idle = of_kind(results, "idle").items()
    surplus = [f"{name}: {result.received:,} messages of others came" for name, result in idle if result.received]
    return [*wrong_with_each(of_kind(results, "publisher"), of_kind(results, "consumer"), count), *surplus]


def _numbers(roles: int) -> list[str]:
    """Number each of several roles; one alone has no number."""
    return [""] if roles == 1 else [f" {number}" for number in range(1, roles + 1)]


def wrong_with(senders: Results, receivers: Results, expected: int, shared: bool = False) -> list[str]:
    """Sentences unless `expected` messages were sent, and received, in all: once, in order, and as they were sent.

    `shared`: each consumer of a queue leaves some out.
    """
    return [
        *stopped_in_words({**senders, **receivers}),
        *_amounts(senders, receivers, expected),
        *(
            f"{name}: {many:,} messages {what}"
            for name, result in receivers.items()
            for what, many in result.wrong.items()
            if not (shared and what == "left out")
        ),
    ]


def wrong_with_each(senders: Results, receivers: Results, expected: int) -> list[str]:
    """Sentences unless each receiver has everything that was sent; a sentence about all is there once."""
    reasons = [wrong for name, result in receivers.items() for wrong in wrong_with(senders, {name: result}, expected)]
    return list(dict.fromkeys(reasons))


def _amounts(senders: Results, receivers: Results, expected: int) -> Iterator[str]:
    sent = sum(each.sent for each in senders.values())
    came = sum(each.received for each in receivers.values())
    if sent != expected:
        yield f"{sent:,} messages were sent instead of {expected:,}"
    if came != expected:
        yield f"{_names(receivers)} received {came:,} messages instead of {expected:,}"
    of_sent = sum(each.sent_checksum for each in senders.values()) % 2**64
    of_received = sum(each.received_checksum for each in receivers.values()) % 2**64
    if sent == came == expected and of_sent != of_received:
        yield f"checksums differ: {of_sent:016x} sent, {of_received:016x} received by {_names(receivers)}"


def _names(results: Results) -> str:
    names = list(results)
    return f"the {names[0]}" if len(names) == 1 else f"{names[0]} to {names[-1]}"


def flow_figures(size: int, receivers: Sequence[RoleResult]) -> Figures:
    """Rates of all receivers together, from the first message that one had to the last that one had; latency.

    The clock starts once a first message is there, which therefore does not count. No rates if it ran too short.
    """
    begun = [result for result in receivers if result.received]
    span_ns = max((each.last_ns for each in begun), default=0) - min((each.first_ns for each in begun), default=0)
    messages = sum(each.received for each in begun) - 1
    return {**rates(size, messages, span_ns), **latency_figures(receivers, "latency")}


def rates(size: int, messages: int, span_ns: int) -> Figures:
    """Messages and megabytes a second, and the span's seconds; nothing if it was too short."""
    if span_ns < LEAST_SPAN_NS or messages < 1:
        return {}
    per_s = messages * 1e9 / span_ns
    return {"messages_per_s": per_s, "megabytes_per_s": per_s * size / 1e6, "seconds": span_ns / 1e9}


def published_figures(size: int, results: Results) -> Figures:
    """Figures of a flow from publishers to consumers; the mean latency also of messages too short to bear a stamp."""
    publishers = list(of_kind(results, "publisher").values())
    consumers = list(of_kind(results, "consumer").values())
    mean_us = (_mean_ns(consumers) - _mean_ns(publishers)) / 1e3
    return {**flow_figures(size, consumers), "latency_mean_us": mean_us}


def _mean_ns(roles: Sequence[RoleResult]) -> int:
    """The mean over the messages of all these roles, each of which has the same number."""
    return sum(each.mean_ns for each in roles) // len(roles)


def by_publishers_clock(size: int, publisher: RoleResult) -> Figures:
    """The rates as the paper computes them: from the first message to the reply. No rates if that was too short."""
    return rates(size, publisher.sent, publisher.details["replied_ns"] - publisher.first_ns)


def with_megabits(figures: Figures) -> Figures:
    """Add the rate in Mb/s, if there is one."""
    return {**figures, "megabits_per_s": 8 * figures["megabytes_per_s"]} if "megabytes_per_s" in figures else figures


def latency_figures(receivers: Sequence[RoleResult], name: str) -> Figures:
    """Mean, percentiles and maximum over all receivers, in us; nothing if messages bear no stamps."""
    return _figures_of_times(LogBuckets.together(each.latency for each in receivers if each.latency), name)


def _figures_of_times(times: LogBuckets, name: str) -> Figures:
    """The figures, without a percentile above p50 of so few times that it is about the maximum."""
    figures = times.figures_us()
    count = figures.pop("count", 0)
    return {
        f"{name}_{what}_us": value for what, value in figures.items() if what == "p50" or has_enough_orders(what, count)
    }


PACED_COLUMNS = (
    Column("due_p50_us", "p50 us from due", with_interval=True),
    Column("due_p99_us", "p99 us from due"),
    Column("lag_p99_us", "lag p99 us"),
)
PACED_PLOTS = tuple(
    Plot(f"{what} from due, by a publisher's rate", f"due_{figure}_us", "µs", x=RATE, x_unit="messages/s")
    for what, figure in (("p50", "p50"), ("p99", "p99"))
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
    """The benchmark with `--rate`: each point at each rate; latency from due, and the publishers' own lag."""
    return replace(
        declared,
        points=lambda settings: _at_rates(declared.points(settings), settings),
        figures=lambda cell, results: _with_lag(cell, results, declared.figures(cell, results)),
        saturation_reasons=_fell_behind,
        options=(*declared.options, RATES, SECONDS),
        columns=(*declared.columns, *PACED_COLUMNS),
        plots=(*declared.plots, *PACED_PLOTS),
        scale=RATE_SCALE,
    )


def _at_rates(points: Sequence[Point], settings: Settings) -> Sequence[Point]:
    """UserError if a rate leaves a consumer without a message for longer than it waits."""
    rates = settings.get("rates") or (None,)
    slowest = min((rate for rate in rates if rate), default=math.inf)
    timeout_s = settings.get("timeout_s", math.inf)
    if 1 / slowest >= timeout_s:
        raise UserError(
            f"--rate {slowest:g} is a message every {1 / slowest:g} s, and a consumer gives up after {timeout_s:g} s "
            f"without one: raise --rate, or --timeout"
        )
    if rates == (None,):
        return points
    return [{**point, RATE: _as_typed(rate)} for point in points for rate in rates]


def _as_typed(rate: float | None) -> float | str:
    if rate is None:
        return MAX
    return int(rate) if rate.is_integer() else rate


def _with_lag(cell: Cell, results: Results, found: Figures) -> Figures:
    """A message's time is from when it was due; beside it stands how late the publishers handed it over."""
    if cell.rate_per_s is None:
        return found
    lags = LogBuckets.together(publisher.details["lag"] for publisher in of_kind(results, "publisher").values())
    from_due = {name.replace("latency_", "due_"): value for name, value in found.items()}
    return from_due | _figures_of_times(lags, "lag")


def _fell_behind(cell: Cell, results: Results) -> list[str]:
    """Sentences if a publisher's rate was not kept, or its consumers did not keep up; each once."""
    if cell.rate_per_s is None:
        return []
    reasons: list[str] = []
    for name, publisher in of_kind(results, "publisher").items():
        for consumer in _consumers_of(name, results):
            reasons += _offered(cell.rate_per_s, publisher, consumer).fell_behind()
    return list(dict.fromkeys(reasons))


def _consumers_of(publisher: str, results: Results) -> list[RoleResult]:
    """The consumer with the publisher's number; all consumers if there is one publisher."""
    if len(of_kind(results, "publisher")) == 1:
        return list(of_kind(results, "consumer").values())
    return [results[publisher.replace("publisher", "consumer")]]


def _offered(rate_per_s: float, publisher: RoleResult, consumer: RoleResult) -> Offered:
    """Messages that were due and not delivered grow by what the consumer took too long for in its last quarter."""
    (came, then_ns), (later, late_ns) = consumer.details["last_quarter"]
    growth = rate_per_s * (late_ns - then_ns) / 1e9 - (later - came)
    details = publisher.details
    lag = publisher.details["lag"]
    return Offered(
        publisher.sent,
        rate_per_s,
        details["given_s"],
        details["taken_s"],
        lag.percentile_ns(99) / 1e3,
        int(growth),
        what="messages",
        backlog="undelivered messages",
        whose="the publisher's",
    )
