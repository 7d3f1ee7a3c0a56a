"""Benchmarks of one-way flows: their roles, the check that every message came unchanged, rates and latency."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from exchange.measurements import LogBuckets
from exchange.unique import unique
from exchange_simulation.messaging.cell import Cell, Figures, Results
from exchange_simulation.messaging.flow import Consume, ConsumeShared, Publish, rest_s
from exchange_simulation.messaging.roles import LinkEnd, Links, Role, RoleResult, of_kind, stopped_in_words
from exchange_simulation.reports.formats.few_orders import has_enough_orders

LEAST_SPAN_NS = 10_000_000
"""The shortest span of a receiver's clock for which a rate is computed. A shorter span may show only how fast a full
buffer empties.
"""


@dataclass(frozen=True)
class Streams:
    """Independent streams of a publisher and a consumer each, which share nothing but broker and machine.

    Each publisher sends `messages` messages of `size` bytes, and awaits one empty reply once its consumer has them.
    """

    messages: Callable[[Cell], int]
    streams_key: str = ""
    """The point's key for the number of streams; empty if there is one stream."""
    size: Callable[[Cell], int] = lambda cell: cell.size
    median_rate_figure: str = ""
    """Name of the figure for the median rate of a stream; empty if the benchmark has no such figure.

    The figure is left out unless every stream was timed.
    """

    def roles(self, cell: Cell, links: Links) -> list[Role]:
        roles: list[Role] = []
        size = self.size(cell)
        count = self.messages(cell)
        load = cell.load
        for number, suffix in enumerate(self._suffixes(cell)):
            listener, connector = links.at_broker(number).pair(size, name=suffix.strip(), one_way=True)
            consume = Consume(size, count, is_flood=load is None, load=load)
            publish = Publish(size, count, load=load)
            roles.append(Role(f"consumer{suffix}", consume, (listener,)))
            roles.append(Role(f"publisher{suffix}", publish, (connector,), begins=True))
        return roles

    def _suffixes(self, cell: Cell) -> list[str]:
        """The end of the names of each stream's roles; see _suffixes_of."""
        streams = cell.point[self.streams_key] if self.streams_key else 1
        return _suffixes_of(streams)

    def judge(self, cell: Cell, results: Results) -> list[str]:
        """Judge stream by stream, so that a message of another stream is noticed."""
        count = self.messages(cell)
        reasons: list[str] = []
        for suffix in self._suffixes(cell):
            publisher = f"publisher{suffix}"
            consumer = f"consumer{suffix}"
            reasons += wrong_with({publisher: results[publisher]}, {consumer: results[consumer]}, count)
        return reasons

    def figures(self, cell: Cell, results: Results) -> Figures:
        size = self.size(cell)
        figures = published_figures(size, results)
        if not self.median_rate_figure:
            return figures
        rates_of_streams = []
        for consumer in of_kind(results, "consumer").values():
            figures_of_stream = flow_figures(size, [consumer])
            if "messages_per_s" not in figures_of_stream:
                return figures
            rates_of_streams.append(figures_of_stream["messages_per_s"])
        return {**figures, self.median_rate_figure: median(rates_of_streams)}


def published_roles(
    cell: Cell, count: int, publisher: LinkEnd, subscribers: Sequence[LinkEnd], idle: Sequence[LinkEnd] = ()
) -> list[Role]:
    """A publisher, and a consumer at each subscriber's end; a consumer replies once it has all messages.

    A role at an `idle` end subscribes too, and must receive no message.
    """
    # An idle role cannot wait for a number of messages, since none comes: it receives until the launcher says stop.
    receive_until_stopped = ConsumeShared(cell.size, publishers=1, rest_s=rest_s(len(idle)))
    consume = Consume(cell.size, count, is_flood=cell.load is None, load=cell.load)
    publish = Publish(
        cell.size,
        count,
        replies=len(subscribers),
        subscribers=len(subscribers) + len(idle),
        load=cell.load,
    )
    roles: list[Role] = []
    for number, end in enumerate(idle, 1):
        roles.append(Role(f"idle {number}", receive_until_stopped, (end,), idles=True))
    for suffix, end in zip(_suffixes_of(len(subscribers)), subscribers, strict=True):
        roles.append(Role(f"consumer{suffix}", consume, (end,)))
    roles.append(Role("publisher", publish, (publisher,), begins=True))
    return roles


def wrong_with_published(results: Results, count: int) -> list[str]:
    """Sentences unless each consumer has all messages, and each idle role has none."""
    reasons = wrong_with_each(of_kind(results, "publisher"), of_kind(results, "consumer"), count)
    for name, result in of_kind(results, "idle").items():
        if result.received:
            reasons.append(f"{name}: {result.received:,} messages of others came")
    return reasons


def _suffixes_of(roles: int) -> list[str]:
    """The ends of the names of several roles: " 1", " 2", ...; a single role has no number."""
    return [""] if roles == 1 else [f" {number}" for number in range(1, roles + 1)]


def wrong_with(senders: Results, receivers: Results, expected: int, shared: bool = False) -> list[str]:
    """Sentences unless `expected` messages were sent in all, and received: once, in order, and unchanged.

    `shared`: the receivers share a queue, so each of them leaves messages out.
    """
    reasons = [*stopped_in_words({**senders, **receivers}), *_wrong_amounts(senders, receivers, expected)]
    for name, result in receivers.items():
        for problem, count in result.wrong.items():
            if not (shared and problem == "left out"):
                reasons.append(f"{name}: {count:,} messages {problem}")
    return reasons


def wrong_with_each(senders: Results, receivers: Results, expected: int) -> list[str]:
    """Sentences unless each receiver has all messages that were sent; equal sentences are returned once."""
    reasons: list[str] = []
    for name, result in receivers.items():
        reasons += wrong_with(senders, {name: result}, expected)
    return unique(reasons)


def _wrong_amounts(senders: Results, receivers: Results, expected: int) -> Iterator[str]:
    """Sentences if too few or too many messages were sent or received, or if the checksums differ."""
    sent = sum(sender.sent for sender in senders.values())
    received = sum(receiver.received for receiver in receivers.values())
    if sent != expected:
        yield f"{sent:,} messages were sent instead of {expected:,}"
    if received != expected:
        yield f"{_names(receivers)} received {received:,} messages instead of {expected:,}"
    if sent != expected or received != expected:
        return
    sent_checksum = sum(sender.sent_checksum for sender in senders.values()) % 2**64
    received_checksum = sum(receiver.received_checksum for receiver in receivers.values()) % 2**64
    if sent_checksum != received_checksum:
        names = _names(receivers)
        yield f"checksums differ: {sent_checksum:016x} sent, {received_checksum:016x} received by {names}"


def _names(results: Results) -> str:
    """The name of one role, or the first and the last name of several."""
    names = list(results)
    return f"the {names[0]}" if len(names) == 1 else f"{names[0]} to {names[-1]}"


def flow_figures(size: int, receivers: Sequence[RoleResult]) -> Figures:
    """Rates of all receivers together, and the latency.

    The clock runs from the first message of any receiver to the last message of any. The first message starts the
    clock, so it does not count. There are no rates if the clock ran for less than LEAST_SPAN_NS.
    """
    latency = latency_figures(receivers, "latency")
    begun = [result for result in receivers if result.received]
    if not begun:
        return latency
    first_ns = min(result.first_ns for result in begun)
    last_ns = max(result.last_ns for result in begun)
    messages = sum(result.received for result in begun) - 1
    return {**rates(size, messages, last_ns - first_ns), **latency}


def rates(size: int, messages: int, span_ns: int) -> Figures:
    """Messages and megabytes a second, and the seconds of the span; nothing if the span is too short."""
    if span_ns < LEAST_SPAN_NS or messages < 1:
        return {}
    per_s = messages * 1e9 / span_ns
    return {"messages_per_s": per_s, "megabytes_per_s": per_s * size / 1e6, "seconds": span_ns / 1e9}


def published_figures(size: int, results: Results) -> Figures:
    """Figures of a flow from publishers to consumers.

    The mean latency is also known of messages that are too short for a stamp, since it is the difference of two means.
    """
    publishers = list(of_kind(results, "publisher").values())
    consumers = list(of_kind(results, "consumer").values())
    mean_us = (_mean_time_ns(consumers) - _mean_time_ns(publishers)) / 1e3
    return {**flow_figures(size, consumers), "latency_mean_us": mean_us}


def _mean_time_ns(roles: Sequence[RoleResult]) -> int:
    """The mean of the clock times of all roles' messages; each role has the same number of messages."""
    return sum(role.mean_ns for role in roles) // len(roles)


def by_publishers_clock(size: int, results: Results, figures: Figures) -> Figures:
    """The figures with the paper's rates: from the publishers' first message to their last reply.

    The receivers' rate stands beside them, as `receiver_messages_per_s`. No rates if a clock ran too short.
    """
    publishers = list(of_kind(results, "publisher").values())
    began_ns = min(publisher.first_ns for publisher in publishers)
    replied_ns = max(publisher.details["replied_ns"] for publisher in publishers)
    sent = sum(publisher.sent for publisher in publishers)
    others = dict(figures)
    if "messages_per_s" in others:
        others["receiver_messages_per_s"] = others.pop("messages_per_s")
    return {**others, **rates(size, sent, replied_ns - began_ns)}


def with_megabits(figures: Figures) -> Figures:
    """Add the rate in Mb/s if the figures have a rate."""
    if "megabytes_per_s" not in figures:
        return figures
    return {**figures, "megabits_per_s": 8 * figures["megabytes_per_s"]}


def latency_figures(receivers: Sequence[RoleResult], name: str) -> Figures:
    """Mean, percentiles and maximum over all receivers, in us; nothing if messages bear no stamps."""
    return figures_of_times(LogBuckets.together(receiver.latency for receiver in receivers if receiver.latency), name)


def figures_of_times(times: LogBuckets, name: str) -> Figures:
    """The figures under names that begin with `name`, as `latency_p99_us`.

    A percentile above p50 is left out if there are too few times for it.
    """
    figures = times.figures_us()
    count = figures.pop("count", 0)
    named: Figures = {}
    for figure, value in figures.items():
        if figure == "p50" or has_enough_orders(figure, count):
            named[f"{name}_{figure}_us"] = value
    return named
