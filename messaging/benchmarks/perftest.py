"""perftest: shared queues, many publishers and many subscribers on each; or exchanges (experiments/bench/crowds.py).

    publishers 1.1 .. 1.6   ══▶  [shared queue 1]   ══▶  subscribers 1.1 .. 1.6
    ...                          ...                     ...
    publishers 10.1 .. 10.6 ══▶  [shared queue 10]  ══▶  subscribers 10.1 .. 10.6

Brokerless: each subscriber has a PULL, each publisher of its queue a PUSH that is connected to all of them: messages
are dealt in turn, where a broker gives them to whoever has room. A queue without a broker is the sum of its ends.

All are ready; the clock starts; every publisher sends `count` messages, rounded up to a multiple of `nsubs`, as fast
as it is let; the clock stops when each queue's total has been delivered. A broker deals no exact quotas, so it is a
queue's total that counts. Transfers are publishes and deliveries together: by default 12,000,240.

Modes fanout and topic are ours: an exchange in place of each queue, and each message to all of its subscribers, so
that transfers are 1 + nsubs for each publish; nothing is dealt, so `count` stays as it is.
"""

from __future__ import annotations

from collections.abc import Mapping

import click

from messaging.benchmark import Asked, Benchmark, Cell, Column, Figures, Point, Published
from messaging.crowds import Crowd, of_kind
from messaging.descriptors import check_descriptors
from messaging.places import Places
from messaging.reckoning import transfer_figures
from messaging.roles import Role, Told
from messaging.sizes import Size
from transports.pattern import Pattern

ROLES = click.IntRange(1, 10_000)
SHARED = "shared"
MODES = {SHARED: Pattern.QUEUE, "fanout": Pattern.FANOUT, "topic": Pattern.TOPIC}
OPTIONS = (
    click.Option(["--npubs"], type=ROLES, default=6, show_default=True, help="Publishers on each queue, or exchange."),
    click.Option(["--nsubs"], type=ROLES, default=6, show_default=True, help="Subscribers on each queue, or exchange."),
    click.Option(["--qt", "queues"], type=ROLES, default=10, show_default=True, help="Queues, or exchanges."),
    click.Option(["--count"], type=click.IntRange(1, 1 << 39), default=100_000, show_default=True,
                 help="Messages of each publisher; of shared queues rounded up to a multiple of --nsubs."),
    click.Option(["--size"], type=Size(), default="256", show_default=True, help="Of a message."),
    click.Option(["--mode"], type=click.Choice(list(MODES)), default=SHARED, show_default=True,
                 help="Queues whose messages are dealt to their subscribers; or exchanges, which give each to all."),
)  # fmt: skip


def mode_of(asked: Asked) -> str:
    """A record made before there were modes has none."""
    return str(asked.get("mode", SHARED))


def points(asked: Asked) -> list[Point]:
    """UserError where a role at an exchange has more connections than this shell allows: two with each, brokerless."""
    size, many, mode = asked["size"], asked["queues"], mode_of(asked)
    if mode == SHARED:
        return [{"size_bytes": size, "queues": many}]
    most = max(asked["npubs"], asked["nsubs"])
    check_descriptors(2 * most, f"a role that meets {most} others has up to two connections with each")
    return [{"size_bytes": size, "exchanges": many, "mode": mode}]


def count_of(asked: Asked) -> int:
    """Of each publisher."""
    of_each = asked["nsubs"] if mode_of(asked) == SHARED else 1
    return int(-(-asked["count"] // of_each) * of_each)


def crowds_of(asked: Asked) -> list[Crowd]:
    pattern, count = MODES[mode_of(asked)], count_of(asked)
    return [
        Crowd(number, pattern, asked["size"], count, asked["npubs"], asked["nsubs"])
        for number in range(1, asked["queues"] + 1)
    ]


def roles(cell: Cell, places: Places) -> list[Role]:
    from messaging.flow import rest_s

    crowds = crowds_of(cell.asked)
    rests_s = rest_s(sum(crowd.subscribers for crowd in crowds))
    return [role for crowd in crowds for role in crowd.roles(places, rests_s)]


def judge(cell: Cell, told: Mapping[str, Told]) -> list[str]:
    """Queue by queue, or exchange by exchange."""
    return [wrong for crowd in crowds_of(cell.asked) for wrong in crowd.wrong_with(told)]


def figures(cell: Cell, told: Mapping[str, Told]) -> Figures:
    return transfer_figures(cell.size, *(list(of_kind(told, kind).values()) for kind in ("publisher", "subscriber")))


BENCHMARK = Benchmark(
    name="perftest",
    about="publishers and subscribers on shared queues, or exchanges: transfers a second",
    paper="Red Hat and Intel, MRG Messaging (2008), chapters 3 and 5",
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
    options=OPTIONS,
    patterns=lambda cell: (MODES[mode_of(cell.asked)],),
    repeats=1,
    quick={"repeats": 3, "npubs": 2, "nsubs": 2, "queues": 2, "count": 10_000},
)
