"""perftest: shared queues, many publishers and many subscribers on each.

    publishers 1.1 .. 1.6   ══▶  [shared queue 1]   ══▶  subscribers 1.1 .. 1.6
    ...                          ...                     ...
    publishers 10.1 .. 10.6 ══▶  [shared queue 10]  ══▶  subscribers 10.1 .. 10.6

Brokerless: each subscriber has a PULL, each publisher of its queue a PUSH that is connected to all of them: messages
are dealt in turn, where a broker gives them to whoever has room. A queue without a broker is the sum of its ends.

All are ready; the clock starts; every publisher sends `count` messages, rounded up to a multiple of `nsubs`, as fast
as it is let; the clock stops when each queue's total has been delivered. A broker deals no exact quotas, so it is a
queue's total that counts. Transfers are publishes and deliveries together: by default 12,000,240.
"""

from __future__ import annotations

from collections.abc import Mapping

import click

from experiments.bench.answer import wrong_with
from experiments.bench.benchmark import Asked, Benchmark, Cell, Column, Figures, Point, Published
from experiments.bench.places import Places
from experiments.bench.reckoning import latency_figures
from experiments.bench.roles import Role, Sharing, Told
from experiments.bench.sizes import Size
from transports.pattern import Pattern

ROLES = click.IntRange(1, 10_000)
OPTIONS = (
    click.Option(["--npubs"], type=ROLES, default=6, show_default=True, help="Publishers on each queue."),
    click.Option(["--nsubs"], type=ROLES, default=6, show_default=True, help="Subscribers on each queue."),
    click.Option(["--qt", "queues"], type=ROLES, default=10, show_default=True, help="Queues."),
    click.Option(["--count"], type=click.IntRange(1, 1 << 39), default=100_000, show_default=True,
                 help="Messages of each publisher, rounded up to a multiple of --nsubs."),
    click.Option(["--size"], type=Size(), default="256", show_default=True, help="Of a message."),
)  # fmt: skip


def points(asked: Asked) -> list[Point]:
    return [{"size_bytes": asked["size"], "queues": asked["queues"]}]


def count_of(asked: Asked) -> int:
    """Of each publisher."""
    return int(-(-asked["count"] // asked["nsubs"]) * asked["nsubs"])


def roles(cell: Cell, places: Places) -> list[Role]:
    return [role for queue in range(1, cell.point["queues"] + 1) for role in on_queue(queue, cell, places)]


def on_queue(queue: int, cell: Cell, places: Places) -> list[Role]:
    from experiments.bench.flow import ConsumeShared, Publish, rest_s

    npubs, nsubs, count = cell.asked["npubs"], cell.asked["nsubs"], count_of(cell.asked)
    listeners, connector = places.queue(cell.size, nsubs, name=str(queue))
    shares = Sharing(f"queue {queue}", npubs * count)
    consume = ConsumeShared(cell.size, npubs, rest_s(nsubs * cell.point["queues"]))
    subscribers = [
        Role(f"subscriber {queue}.{number}", consume, (listener,), shares=shares)
        for number, listener in enumerate(listeners, 1)
    ]
    publishers = [
        Role(f"publisher {queue}.{number + 1}", Publish(cell.size, count, 0, number), (connector,), True, shares)
        for number in range(npubs)
    ]
    return subscribers + publishers


def judge(cell: Cell, told: Mapping[str, Told]) -> list[str]:
    """Queue by queue: its messages were delivered once, to whomever; each publisher's in order."""
    expected, wrong = cell.asked["npubs"] * count_of(cell.asked), []
    for queue in range(1, cell.point["queues"] + 1):
        senders, receivers = (_of(told, f"{kind} {queue}.") for kind in ("publisher", "subscriber"))
        wrong += [f"queue {queue}: {reason}" for reason in wrong_with(senders, receivers, expected, shared=True)]
    return wrong


def _of(told: Mapping[str, Told], beginning: str) -> dict[str, Told]:
    return {name: of_role for name, of_role in told.items() if name.startswith(beginning)}


def figures(cell: Cell, told: Mapping[str, Told]) -> Figures:
    """From the first publisher's start to the last delivery."""
    publishers, subscribers = _of(told, "publisher"), _of(told, "subscriber")
    start_ns = min(of_role.first_ns for of_role in publishers.values())
    seconds = (max(of_role.last_ns for of_role in subscribers.values()) - start_ns) / 1e9
    publishing_s = (max(of_role.last_ns for of_role in publishers.values()) - start_ns) / 1e9
    published = sum(of_role.sent for of_role in publishers.values())
    delivered = sum(of_role.received for of_role in subscribers.values())
    return {
        "transfers": published + delivered,
        "transfers_per_s": (published + delivered) / seconds,
        "publishes_per_s": published / publishing_s,
        "deliveries_per_s": delivered / seconds,
        "megabytes_per_s": delivered * cell.size / 1e6 / seconds,
        "seconds": seconds,
        **latency_figures(list(subscribers.values()), "latency"),
    }


BENCHMARK = Benchmark(
    name="perftest",
    about="publishers and subscribers on shared queues: transfers a second",
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
        Column("packets_per_message", "packets a publish"),
        Column("seconds", "seconds"),
    ),
    published=(
        Published("transfers of a run, 60 clients, 10 queues, 256 bytes", "12,000,240"),
        Published("transfers/s, 2 x 4 cores at 3.2 GHz, its best allocator", "762,000"),
        Published("the same, as it was released", "509,000 (printed as 505K)"),
        Published("transfers/s, 2 x 4 cores at 3.0 GHz, best and as released", "558,000 and 344,000"),
        Published("into the broker: half of the transfers", "380,000 messages/s"),
    ),
    options=OPTIONS,
    patterns=lambda _cell: (Pattern.QUEUE,),
    repeats=1,
    quick={"repeats": 3, "npubs": 2, "nsubs": 2, "queues": 2, "count": 10_000},
)
