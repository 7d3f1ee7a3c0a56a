"""perftest: shared queues, many publishers and many subscribers on each; or exchanges.

    publishers 1.1 .. 1.6   ══▶  [shared queue 1]   ══▶  subscribers 1.1 .. 1.6
    ...                          ...                     ...
    publishers 10.1 .. 10.6 ══▶  [shared queue 10]  ══▶  subscribers 10.1 .. 10.6

    mode fanout   publishers ══▶ [fanout exchange ▸ a queue for each] ══▶ subscribers, each message to every one
    mode topic    the same through a topic exchange: publisher P at exchange Q has the key perf.qQ.pP, and its
                  subscribers have the pattern perf.qQ.#

Brokerless: each subscriber has a PULL, and each publisher of its queue a PUSH that is connected to all of them.
Messages are dealt in turn, while a broker gives them to whichever has room. A queue without a broker is the sum of its
ends. In fanout and topic each publisher has an XPUB, and each subscriber a SUB that is connected to all of them.

The clock starts once all are ready. Every publisher sends `count` messages, rounded up to a multiple of `nsubs`, as
fast as it can. The clock stops once each queue's total has been delivered: a broker deals no exact quotas, so it is a
queue's total that counts. Transfers are publishes and deliveries together: by default 12,000,240.

Modes fanout and topic are ours: an exchange in place of each queue, and each message to all of its subscribers, so
transfers are 1 + nsubs for each publish; nothing is dealt, so `count` is not rounded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import click

from messaging.benchmark import Benchmark, Cell, Column, Figures, Makes, Point, Published, Results, Settings
from messaging.flow import ConsumeShared, Publish, rest_s
from messaging.options import SIZE
from messaging.roles import LinkEnd, Links, Role, Sharing, check_descriptors, of_kind
from messaging.streams import transfer_figures, wrong_with, wrong_with_each
from runs.option_types import Count
from transports.base import Pattern

ROLES = click.IntRange(1, 10_000)
SHARED = "shared"
MODES = {SHARED: Pattern.QUEUE, "fanout": Pattern.FANOUT, "topic": Pattern.TOPIC}
OPTIONS = (
    click.Option(["--npubs"], type=ROLES, default=6, show_default=True, help="Publishers on each queue, or exchange."),
    click.Option(["--nsubs"], type=ROLES, default=6, show_default=True, help="Subscribers on each queue, or exchange."),
    click.Option(["--qt", "queues"], type=ROLES, default=10, show_default=True, help="Queues, or exchanges."),
    click.Option(["--count"], type=Count(1, 1 << 39), default="100k", show_default=True,
                 help="Messages of each publisher; of shared queues rounded up to a multiple of --nsubs."),
    click.Option(["--size"], type=SIZE, default="256", show_default=True, help="Of a message."),
    click.Option(["--mode"], type=click.Choice(list(MODES)), default=SHARED, show_default=True,
                 help="Queues whose messages are dealt to their subscribers; or exchanges, which give each to all."),
)  # fmt: skip


@dataclass(frozen=True)
class Destination:
    """A queue or an exchange, numbered from 1, with its publishers of `count` messages each, and its subscribers."""

    number: int
    pattern: Pattern
    size: int
    count: int
    publishers: int
    subscribers: int

    @property
    def is_queue(self) -> bool:
        return self.pattern is Pattern.QUEUE

    @property
    def name(self) -> str:
        return f"{'queue' if self.is_queue else 'exchange'} {self.number}"

    @property
    def published(self) -> int:
        return self.publishers * self.count

    @property
    def delivered(self) -> int:
        return self.published * (1 if self.is_queue else self.subscribers)

    def roles(self, links: Links, rest_s: float) -> list[Role]:
        """`rest_s` is that of each ConsumeShared."""
        subscribing, publishing = self._ends(links)
        shares, consume = Sharing(self.name, self.delivered), ConsumeShared(self.size, self.publishers, rest_s)
        subscribers = [
            Role(f"subscriber {self.number}.{number}", consume, (end,), shares=shares)
            for number, end in enumerate(subscribing, 1)
        ]
        publishers = [
            Role(f"publisher {self.number}.{number + 1}", self._publish(number), (end,), True, shares)
            for number, end in enumerate(publishing)
        ]
        return subscribers + publishers

    def _publish(self, number: int) -> Publish:
        return Publish(self.size, self.count, replies=0, publisher=number, subscribers=self.subscribers)

    def _ends(self, links: Links) -> tuple[Sequence[LinkEnd], Sequence[LinkEnd]]:
        """Ends of the subscribers, and of the publishers."""
        name = str(self.number)
        if self.is_queue:
            listeners, connector = links.many(self.size, self.pattern, [()] * self.subscribers, name=name)
            return listeners, [connector] * self.publishers
        keys, subscribed = self._keys()
        connections = self.publishers * self.subscribers
        listeners, connector = links.many(self.size * connections, self.pattern, keys, subscribed, name)
        return [connector] * self.subscribers, listeners

    def _keys(self) -> tuple[list[tuple[str, ...]], tuple[str, ...]]:
        """Routing keys of each publisher, and patterns of each subscriber."""
        if self.pattern is not Pattern.TOPIC:
            return [()] * self.publishers, ()
        stem = f"perf.q{self.number}"
        return [(f"{stem}.p{number}",) for number in range(1, self.publishers + 1)], (f"{stem}.#",)

    def wrong_with(self, results: Results) -> list[str]:
        """Sentences unless each message was delivered once, to one or to all, and each publisher's in order."""
        senders, receivers = (of_kind(results, f"{kind} {self.number}.") for kind in ("publisher", "subscriber"))
        if self.is_queue:
            wrong = wrong_with(senders, receivers, self.published, shared=True)
        else:
            wrong = wrong_with_each(senders, receivers, self.published)
        return [f"{self.name}: {reason}" for reason in wrong]


def mode_of(settings: Settings) -> str:
    """The mode of a recorded cell; old records name no mode."""
    return str(settings.get("mode", SHARED))


def points(settings: Settings) -> list[Point]:
    """UserError if a role at an exchange has too few descriptors: a brokerless one has two for each role it meets."""
    size, many, mode = settings["size"], settings["queues"], mode_of(settings)
    if mode == SHARED:
        return [{"size_bytes": size, "queues": many}]
    most = max(settings["npubs"], settings["nsubs"])
    check_descriptors(2 * most, f"a role that meets {most} others has up to two connections with each")
    return [{"size_bytes": size, "exchanges": many, "mode": mode}]


def count_of(settings: Settings) -> int:
    """Number of messages of each publisher."""
    multiple = settings["nsubs"] if mode_of(settings) == SHARED else 1
    return int(-(-settings["count"] // multiple) * multiple)


def destinations_of(settings: Settings) -> list[Destination]:
    pattern, count = MODES[mode_of(settings)], count_of(settings)
    return [
        Destination(number, pattern, settings["size"], count, settings["npubs"], settings["nsubs"])
        for number in range(1, settings["queues"] + 1)
    ]


def roles(cell: Cell, links: Links) -> list[Role]:
    destinations = destinations_of(cell.settings)
    rests_s = rest_s(sum(each.subscribers for each in destinations))
    return [role for each in destinations for role in each.roles(links, rests_s)]


def judge(cell: Cell, results: Results) -> list[str]:
    return [wrong for each in destinations_of(cell.settings) for wrong in each.wrong_with(results)]


def figures(cell: Cell, results: Results) -> Figures:
    publishers, subscribers = (list(of_kind(results, kind).values()) for kind in ("publisher", "subscriber"))
    return transfer_figures(cell.size, publishers, subscribers)


BENCHMARK = Benchmark(
    about="publishers and subscribers on shared queues, or exchanges: transfers a second",
    paper="Red Hat and Intel, MRG Messaging, chapters 3 and 5",
    points=points,
    roles=roles,
    judge=judge,
    figures=figures,
    columns=(
        Column("transfers", "transfers", exact=True),
        Column("transfers_per_s", "transfers/s", with_interval=True),
        Column("publishes_per_s", "publishes/s"),
        Column("deliveries_per_s", "deliveries/s"),
        Column("megabytes_per_s", "MB/s"),
        Column("packets_per_message", "packets"),
        Column("seconds", "s"),
    ),
    published=(
        Published("transfers of a run, 60 clients, 10 queues, 256 bytes", "12,000,240"),
        Published("transfers/s, 2 x 4 cores at 3.2 GHz, its best allocator", "762,000"),
        Published("the same, as it was released", "509,000 (printed as 505K)"),
        Published("transfers/s, 2 x 4 cores at 3.0 GHz, best and as released", "558,000 and 344,000"),
        Published("into the broker: half of the transfers", "380,000 messages/s"),
    ),
    makes=(
        Makes(
            "figures 8, 9",
            "12,000,240 transfers, 256 bytes, 10 shared queues",
            "--delivery confirmed",
            "a role is a process, 120 in all; the paper has 60 clients that do both",
        ),
        Makes(
            "5.2, 1:4",
            "what a fan-out of four leaves",
            "--mode fanout --npubs 1 --nsubs 4",
            "16 messages a frame are not packed",
        ),
        Makes(
            "figures 10 to 19",
            "CPU, context switches, memory, packets of a run",
            "",
            "totals, not series over time; no share of user and system",
        ),
    ),
    options=OPTIONS,
    patterns=lambda cell: (MODES[mode_of(cell.settings)],),
    repeats=1,
    quick={"repeats": 3, "npubs": 2, "nsubs": 2, "queues": 2, "count": 10_000},
)
