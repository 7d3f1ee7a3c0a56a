"""perftest: clients that publish to shared queues and subscribe to them; or publishers, exchanges, and subscribers.

    clients 1.1 .. 1.6    ══▶  [shared queue 1]   ══▶  the same clients
    ...                        ...
    clients 10.1 .. 10.6  ══▶  [shared queue 10]  ══▶  the same clients          60 processes, which do both

    --npubs, --nsubs   publishers 1.1 .. 1.n ══▶ [shared queue 1] ══▶ subscribers 1.1 .. 1.m, a process each

    mode fanout   publishers ══▶ [fanout exchange ▸ a queue for each] ══▶ subscribers, each message to every one
    mode topic    the same through a topic exchange: publisher P at exchange Q has the key perf.qQ.pP, and its
                  subscribers have the pattern perf.qQ.#

docs/bench-perftest.md says what is counted, and what stands in for a queue without a broker.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import click

from exchange.measurements import LogBuckets
from exchange_simulation.launching.errors import UserError
from exchange_simulation.launching.option_types import Count, OneOf
from exchange_simulation.messaging.benchmark import BenchmarkDefinition
from exchange_simulation.messaging.cell import Cell, Figures, Results
from exchange_simulation.messaging.flow import ConsumeShared, Publish, rest_s
from exchange_simulation.messaging.message_load import MessageLoad
from exchange_simulation.messaging.options import SIZE
from exchange_simulation.messaging.paced import offered_of, paced_senders
from exchange_simulation.messaging.paper import Published
from exchange_simulation.messaging.point import Point, Settings
from exchange_simulation.messaging.presentation import Column, Plot
from exchange_simulation.messaging.roles import LinkEnd, Links, Role, Sharing, check_descriptors, of_kind
from exchange_simulation.messaging.streams import latency_figures, rates, wrong_with, wrong_with_each
from transports.base import Pattern
from transports.registry import has_broker

SHARED = "shared"
CLIENTS_PER_QUEUE = 6
CLIENTS_PER_QUEUE_WITH_QUICK = 2
MESSAGES = 100_000
"""The default number of messages of each publisher, as in the report."""
QUICK_MESSAGES = 10_000
"""The same with `--quick`."""
TRANSFERS_PER_S = 50_000.0
"""Messages into the broker and out of it that two processors usually make a second."""
TRANSFERS_PER_S_BROKERLESS = 500_000.0
"""The same without a broker."""
MODES = {SHARED: Pattern.QUEUE, "fanout": Pattern.FANOUT, "topic": Pattern.TOPIC}

ROLES = click.IntRange(1, 10_000)
OPTIONS = (
    click.Option(
        ["--clients"],
        type=ROLES,
        help="Processes that publish and subscribe, in all, dealt to the queues.  [default: 6 a queue; 2 with --quick]",
    ),
    click.Option(["--npubs"], type=ROLES, help="Publishers on each queue, or exchange, that do not subscribe."),
    click.Option(["--nsubs"], type=ROLES, help="Subscribers on each queue, or exchange, that do not publish."),
    click.Option(["--qt", "queues"], type=ROLES, default=10, show_default=True, help="Queues, or exchanges."),
    click.Option(
        ["--count"],
        type=Count(1, 1 << 39),
        help="Messages of each publisher; of shared queues rounded up to a multiple of --nsubs.  [default: 100k; 10k "
        "with --quick; at a rate those of --seconds]",
    ),
    click.Option(["--size"], type=SIZE, default="256", show_default=True, help="Of a message."),
    click.Option(
        ["--packing"],
        type=Count(1, 1 << 16),
        default="1",
        show_default=True,
        help="Market data messages that a message stands for, as 256 bytes for 16 of OPRA's; it multiplies rates.",
    ),
    click.Option(
        ["--mode"],
        type=OneOf(list(MODES)),
        default=SHARED,
        show_default=True,
        help="Queues whose messages are dealt to their subscribers; or exchanges, which give each to all.",
    ),
)


@dataclass(frozen=True)
class Shape:
    """How many clients publish to each queue or exchange, and how many subscribe to it."""

    publishers: int
    subscribers: int
    publish_and_subscribe: bool = False
    """Each client does both."""

    @classmethod
    def of(cls, settings: Settings) -> Shape:
        """UserError if --clients is combined with --npubs, --nsubs or --mode, or is no multiple of --qt."""
        npubs = settings.get("npubs")
        nsubs = settings.get("nsubs")
        clients = settings.get("clients")
        is_split = npubs is not None or nsubs is not None or settings["mode"] != SHARED
        if is_split and clients is not None:
            raise UserError(
                "--clients publish to shared queues and subscribe to them: leave out --npubs, --nsubs, --mode"
            )
        if is_split:
            return cls(npubs or CLIENTS_PER_QUEUE, nsubs or CLIENTS_PER_QUEUE)
        queues = settings["queues"]
        default_per_queue = CLIENTS_PER_QUEUE_WITH_QUICK if settings.get("quick") else CLIENTS_PER_QUEUE
        clients_per_queue, remainder = divmod(clients or default_per_queue * queues, queues)
        if remainder or not clients_per_queue:
            raise UserError(f"--clients is {clients}: give a multiple of --qt, which is {queues}")
        return cls(clients_per_queue, clients_per_queue, publish_and_subscribe=True)

    @property
    def kinds(self) -> tuple[str, str]:
        """First words of the roles that publish, and of those that subscribe."""
        return ("client", "client") if self.publish_and_subscribe else ("publisher", "subscriber")


REPORTS_SHAPE = Shape(CLIENTS_PER_QUEUE, CLIENTS_PER_QUEUE, publish_and_subscribe=True)
REPORTS_FANOUT = 4
"""Subscribers of each message in the report's 1:4."""
OPRA_PACKING = 16
"""The report's market data messages in a message."""


@dataclass(frozen=True)
class Destination:
    """A queue or an exchange, numbered from 1, to which each publisher sends `count` messages."""

    number: int
    pattern: Pattern
    size: int
    count: int
    shape: Shape
    load: MessageLoad | None = None
    """The load of each publisher; None if it sends as fast as it can."""

    @property
    def is_queue(self) -> bool:
        return self.pattern is Pattern.QUEUE

    @property
    def name(self) -> str:
        return f"{'queue' if self.is_queue else 'exchange'} {self.number}"

    @property
    def published(self) -> int:
        return self.shape.publishers * self.count

    @property
    def delivered(self) -> int:
        return self.published * (1 if self.is_queue else self.shape.subscribers)

    def roles(self, links: Links, rest_s: float) -> list[Role]:
        """The roles at this destination. `rest_s`: seconds that a subscriber pauses between two reads."""
        subscribing_ends, publishing_ends = self._ends(links)
        shares = Sharing(self.name, self.delivered)
        consume = ConsumeShared(self.size, self.shape.publishers, rest_s, load=self.load)
        roles = []
        if self.shape.publish_and_subscribe:
            for number, ends in enumerate(zip(publishing_ends, subscribing_ends, strict=True)):
                task = replace(consume, count=self.count, publisher=number)
                roles.append(Role(f"client {self.number}.{number + 1}", task, ends, shares=shares))
            return roles
        for number, end in enumerate(subscribing_ends):
            roles.append(Role(f"subscriber {self.number}.{number + 1}", consume, (end,), shares=shares))
        for number, end in enumerate(publishing_ends):
            task_of_publisher = self._publish(number)
            name = f"publisher {self.number}.{number + 1}"
            roles.append(Role(name, task_of_publisher, (end,), True, shares))
        return roles

    def _publish(self, number: int) -> Publish:
        return Publish(
            self.size, self.count, replies=0, publisher=number, subscribers=self.shape.subscribers, load=self.load
        )

    def _ends(self, links: Links) -> tuple[Sequence[LinkEnd], Sequence[LinkEnd]]:
        """Return the ends of the subscribers, and those of the publishers.

        Subscribers of a queue listen, and publishers connect to it; an exchange's publishers listen.
        """
        name = str(self.number)
        if self.is_queue:
            listeners, connector = links.many(self.size, self.pattern, [()] * self.shape.subscribers, name=name)
            return listeners, [connector] * self.shape.publishers
        keys, subscribed = self._keys()
        connections = self.shape.publishers * self.shape.subscribers  # all of them together share the bound on buffers
        listeners, connector = links.many(self.size * connections, self.pattern, keys, subscribed, name)
        return [connector] * self.shape.subscribers, listeners

    def _keys(self) -> tuple[list[tuple[str, ...]], tuple[str, ...]]:
        """Routing keys of each publisher, and patterns of each subscriber."""
        if self.pattern is not Pattern.TOPIC:
            return [()] * self.shape.publishers, ()
        stem = f"perf.q{self.number}"
        return [(f"{stem}.p{number}",) for number in range(1, self.shape.publishers + 1)], (f"{stem}.#",)

    def problems(self, results: Results) -> list[str]:
        """Return sentences unless each message was delivered once, to one or to all, and each publisher's in order."""
        senders, receivers = (of_kind(results, f"{kind} {self.number}.") for kind in self.shape.kinds)
        if self.is_queue:
            reasons = wrong_with(senders, receivers, self.published, shared=True)
        else:
            reasons = wrong_with_each(senders, receivers, self.published)
        return [f"{self.name}: {reason}" for reason in reasons]


def points(settings: Settings) -> list[Point]:
    """Return the benchmark's one point.

    UserError if messages have no room for what they hold, or if roles at an exchange may open too few descriptors.
    """
    from exchange_simulation.messaging.payload import NUMBERED

    size = settings["size"]
    queues = settings["queues"]
    mode = settings["mode"]
    shape = Shape.of(settings)
    if settings.get("packing", 1) > size:
        raise UserError(f"--packing is {settings['packing']}: {size} bytes have no room for that many messages")
    if size < NUMBERED and (shape.publishers > 1 or (mode == SHARED and shape.subscribers > 1)):
        raise UserError(f"--size is {size}: {NUMBERED} bytes or more tell messages of several clients apart")
    if mode == SHARED:
        return [{"size_bytes": size, "queues": queues, "mode": mode}]
    most = max(shape.publishers, shape.subscribers)
    if not all(map(has_broker, settings["transport"])):
        check_descriptors(2 * most, f"a role that meets {most} others has up to two connections with each")
    return [{"size_bytes": size, "exchanges": queues, "mode": mode}]


def count_of(cell: Cell) -> int:
    """Number of messages of each publisher."""
    settings = cell.settings
    default_count = QUICK_MESSAGES if settings.get("quick") else MESSAGES
    count = cell.load.messages if cell.load is not None else settings.get("count") or cell.times_longer * default_count
    multiple = Shape.of(settings).subscribers if settings["mode"] == SHARED else 1
    return math.ceil(count / multiple) * multiple


def destinations_of(cell: Cell) -> list[Destination]:
    settings = cell.settings
    pattern = MODES[settings["mode"]]
    count = count_of(cell)
    shape = Shape.of(settings)
    return [
        Destination(number, pattern, cell.size, count, shape, cell.load) for number in range(1, settings["queues"] + 1)
    ]


def flood_s(cell: Cell) -> float:
    """About how long a cell takes that publishes as fast as it can."""
    transfers = sum(destination.published + destination.delivered for destination in destinations_of(cell))
    return transfers / (TRANSFERS_PER_S if cell.has_broker else TRANSFERS_PER_S_BROKERLESS)


def roles(cell: Cell, links: Links) -> list[Role]:
    destinations = destinations_of(cell)
    pause_s = rest_s(sum(destination.shape.subscribers for destination in destinations))
    return [role for destination in destinations for role in destination.roles(links, pause_s)]


def judge(cell: Cell, results: Results) -> list[str]:
    return [problem for destination in destinations_of(cell) for problem in destination.problems(results)]


def figures(cell: Cell, results: Results) -> Figures:
    """Return the rates of publishes, until a broker has taken the last, and of deliveries, until the last has come.

    Both clocks start with the first publisher. A rate is left out if its clock ran too short. Latency comes with them.
    """
    publishing_kind, subscribing_kind = Shape.of(cell.settings).kinds
    publishers = list(of_kind(results, publishing_kind).values())
    subscribers = list(of_kind(results, subscribing_kind).values())
    start_ns = min(publisher.first_ns for publisher in publishers)
    end_ns = max(subscriber.last_ns for subscriber in subscribers)
    last_taken_ns = max(publisher.details.get("published_ns", publisher.last_ns) for publisher in publishers)
    # A publisher may learn late that its last message was taken: nothing is published after the last delivery.
    published_ns = min(last_taken_ns, end_ns)
    published = sum(publisher.sent for publisher in publishers)
    delivered = sum(subscriber.received for subscriber in subscribers)
    inward = rates(cell.size, published, published_ns - start_ns)
    outward = rates(cell.size, delivered, end_ns - start_ns)
    packing = cell.settings.get("packing", 1)
    figures: Figures = {"transfers": published + delivered}
    if outward:
        figures["transfers_per_s"] = figures["transfers"] / outward["seconds"]
        figures["deliveries_per_s"] = outward["messages_per_s"]
        figures["megabytes_per_s"] = outward["megabytes_per_s"]
        figures["seconds"] = outward["seconds"]
    if inward:
        figures["publishes_per_s"] = inward["messages_per_s"]
        figures["published_megabytes_per_s"] = inward["megabytes_per_s"]
    if packing > 1 and inward:
        figures["packed_in_per_s"] = packing * inward["messages_per_s"]
    if packing > 1 and outward:
        figures["packed_out_per_s"] = packing * outward["messages_per_s"]
    return {**figures, **latency_figures(subscribers, "latency")}


def fell_behind(cell: Cell, results: Results) -> list[str]:
    """Sentences if the publishers did not keep their rate, or if the subscribers did not keep up with it.

    A queue deals no exact quotas, so no subscriber knows how many messages it still has to get. The backlog of all is
    the rate times the mean delay from due, and it is compared at the begin and at the end of the last quarter.
    """
    if cell.load is None:
        return []
    publishers = paced_senders(results)
    backlogs: list[float] = []
    for number, window in enumerate(cell.load.quarter_windows):
        parts = [result.details["quarter_windows"][number] for result in results.values() if result.received]
        delay_ns = LogBuckets.together(part.latency for part in parts).mean_ns
        backlogs.append(cell.load.rate_in(window) * len(publishers) * delay_ns / 1e9)
    before, after = backlogs
    growth = 0 if math.isnan(after - before) else round(after - before)  # messages without a stamp have no delay
    return list(offered_of(publishers, growth, "the publishers'").reasons_for_saturated())


def _over_time(title: str, unit: str, **series: str) -> Plot:
    return Plot(title, title, unit, x="second", x_unit="s", linear=True, series=series)


PLOTS_OVER_TIME = (
    _over_time("Processors over time (figures 10, 15)", "% of all", user_percent="user", system_percent="system"),
    _over_time(
        "Context switches and interrupts over time (figures 11, 16)",
        "/s",
        switches_per_s="context switches",
        interrupts_per_s="interrupts",
    ),
    _over_time("Memory over time (figures 12, 17)", "MB", used_mb="of the machine", broker_mb="of the broker"),
    _over_time("Packets over time (figures 13, 18)", "packets/s", packets_per_s="all interfaces"),
    _over_time("Bytes over time (figures 14, 19)", "B/s", bytes_per_s="all interfaces"),
)


def _is_the_reports_run(settings: Settings) -> bool:
    """Whether these are the report's 60 clients, 10 queues and 256 bytes."""
    return Shape.of(settings) == REPORTS_SHAPE and _has_the_reports_messages(settings)


def _has_the_reports_count(settings: Settings) -> bool:
    """Whether these are the report's clients, and as many messages of each, which its printed total names."""
    count = settings.get("count") or (QUICK_MESSAGES if settings.get("quick") else MESSAGES)
    return _is_the_reports_run(settings) and count == MESSAGES


def _fans_out_to_four(settings: Settings) -> bool:
    return Shape.of(settings).subscribers == REPORTS_FANOUT and _has_the_reports_messages(settings)


def _has_the_reports_messages(settings: Settings) -> bool:
    """Whether these are 10 queues or exchanges and 256 bytes."""
    return bool(settings["queues"] == 10 and settings["size"] == 256)


def _packs_as_opra(fits: Callable[[Settings], bool]) -> Callable[[Settings], bool]:
    """Whether settings fit, and have 16 market data messages in each message."""
    return lambda settings: fits(settings) and settings.get("packing", 1) == OPRA_PACKING


def _shared(title: str, value: str, figure: str, fits: Callable[[Settings], bool] = _is_the_reports_run) -> Published:
    """A value that the report printed of 10 shared queues, where each message goes to one subscriber."""
    return Published(title, value, figure=figure, where={"mode": SHARED}, fits=fits)


def _fanout(title: str, value: str, figure: str, fits: Callable[[Settings], bool] = _fans_out_to_four) -> Published:
    """A value that the report computed for a fan-out to four subscribers."""
    return Published(title, value, figure=figure, where={"mode": "fanout"}, fits=fits)


BENCHMARK = BenchmarkDefinition(
    about="publishers and subscribers on shared queues, or exchanges: transfers a second",
    paper="Red Hat and Intel, MRG Messaging, chapters 3 and 5",
    points=points,
    roles=roles,
    judge=judge,
    figures=figures,
    flood_s=flood_s,
    takes_rate=True,
    saturation_reasons=fell_behind,
    columns=(
        Column("transfers", "transfers", exact=True),
        Column("transfers_per_s", "transfers/s", with_interval=True),
        Column("publishes_per_s", "publishes/s"),
        Column("deliveries_per_s", "deliveries/s"),
        Column("published_megabytes_per_s", "MB/s in"),
        Column("megabytes_per_s", "MB/s out"),
        Column("latency_p50_us", "end to end p50 us"),
        Column("latency_p99_us", "p99 us"),
        Column("packed_in_per_s", "packed in/s"),
        Column("packed_out_per_s", "packed out/s"),
        Column("packets_per_message", "packets"),
        Column("user_percent", "user %"),
        Column("system_percent", "system %"),
        Column("interrupts_per_s", "interrupts/s"),
        Column("seconds", "s"),
    ),
    plots_over_time=PLOTS_OVER_TIME,
    published=(
        _shared(
            "transfers of a run, 60 clients, 10 queues, 256 bytes", "12,000,240", "transfers", _has_the_reports_count
        ),
        _shared("reliable transfers/s, 2 x 4 cores at 3.2 GHz, optimized allocator", "762,000", "transfers_per_s"),
        _shared(
            "the same, non-optimized",
            "505,000 (its own percentages give 509,000)",
            "transfers_per_s",
        ),
        _shared("the same at 3.0 GHz, optimized allocator", "558 (558,000 is meant)", "transfers_per_s"),
        _shared("the same at 3.0 GHz, non-optimized", "344,000", "transfers_per_s"),
        _shared("messages/s into the broker (the report: half of the transfers)", "380,000", "publishes_per_s"),
        _shared(
            "OPRA's messages/s into the broker, 16 in 256 bytes",
            "6,080,000",
            "packed_in_per_s",
            _packs_as_opra(_is_the_reports_run),
        ),
        _shared("% in user code, at 3.0 GHz and 3.2 GHz", "78, 79", "user_percent"),
        _shared("% in the kernel, at 3.0 GHz and 3.2 GHz", "18, 19", "system_percent"),
        _shared(
            "seconds of the best run, at 3.0 GHz and 3.2 GHz", "about 22, about 17", "seconds", _has_the_reports_count
        ),
        _fanout("messages/s into the broker at 1:4 (the report: transfers / 5)", "152,000", "publishes_per_s"),
        _fanout(
            "OPRA's messages/s into the broker at 1:4",
            "2,432,000",
            "packed_in_per_s",
            _packs_as_opra(_fans_out_to_four),
        ),
    ),
    options=OPTIONS,
    patterns=lambda cell: (MODES[cell.settings["mode"]],),
    repeats=1,
    quick_values={"repeats": 3, "queues": 2},
)
