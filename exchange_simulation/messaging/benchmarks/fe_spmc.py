"""FE-SPMC: fanout exchange, single publisher, multiple consumers.

                                                      ┌▸ queue 1 ══▶ consumer 1
    publisher  ══ N messages of a size ══▶  [fanout exchange ▸ queue 2]  ══▶ consumer 2
                                                      └▸ queue c ══▶ consumer c
    publisher  ◀── [queue ◂ direct exchange]  ◀── one empty reply of each, once it has N

Brokerless: an XPUB and c SUBs; PUSHes to a PULL for the replies.
"""

from __future__ import annotations

from exchange_simulation.messaging.benchmark import BenchmarkDefinition
from exchange_simulation.messaging.cell import Cell, Counts, Figures, Results
from exchange_simulation.messaging.options import COUNT, numbers_option, sizes_option
from exchange_simulation.messaging.point import Point, Settings, by_size_and
from exchange_simulation.messaging.presentation import Column, Plot
from exchange_simulation.messaging.roles import Links, Role, check_descriptors
from exchange_simulation.messaging.streams import (
    by_publishers_clock,
    published_figures,
    published_roles,
    wrong_with_published,
)
from transports.base import Pattern
from transports.registry import has_broker

COUNTS = Counts(broker=80_000, brokerless=800_000, total_bytes=1 << 28)
CONSUMERS = numbers_option(
    "--consumers",
    noun="consumers",
    most=1024,
    default="1,2,4,8,16,32",
    metavar="C[,...]",
    help="How many get each message.",
)


def points(settings: Settings) -> list[Point]:
    """A point for each size and number of consumers.

    UserError if a publisher has too few descriptors: without a broker it needs two for each consumer.
    """
    most = max(settings["consumers"])
    if not all(map(has_broker, settings["transport"])):
        check_descriptors(2 * most, f"{most} consumers need up to two descriptors each at their publisher")
    return by_size_and("consumers")(settings)


def count_of(cell: Cell) -> int:
    """Number of messages. The default number is divided by the number of consumers, each of which gets all messages."""
    count = cell.count(COUNTS)
    if cell.settings.get("count") or cell.load:
        return count
    return max(8, count // cell.point["consumers"])


def flood_s(cell: Cell) -> float:
    """About how long a cell takes that publishes as fast as it can. A user's number of messages is not divided."""
    return COUNTS.flood_s(cell, streams=cell.point["consumers"] if cell.settings.get("count") else 1)


def roles(cell: Cell, links: Links) -> list[Role]:
    consumers = cell.point["consumers"]
    (publisher,), subscriber = links.many(cell.size * consumers, Pattern.FANOUT)
    return published_roles(cell, count_of(cell), publisher, [subscriber] * consumers)


def figures(cell: Cell, results: Results) -> Figures:
    """The paper's clock, which runs until all consumers have replied, and the consumers' own beside it."""
    consumers = cell.point["consumers"]
    by_paper = by_publishers_clock(cell.size, results, published_figures(cell.size, results))
    if "messages_per_s" not in by_paper:
        return by_paper
    published_per_s = by_paper.pop("messages_per_s")
    return {
        **by_paper,
        "published_per_s": published_per_s,
        "delivered_per_s": published_per_s * consumers,
        "megabytes_per_s": by_paper["megabytes_per_s"] * consumers,
    }


BENCHMARK = BenchmarkDefinition(
    about="one publisher, a fanout exchange, c consumers: rates published and delivered, by c",
    paper="AMQP over InfiniBand, 3.4 and figures 5a to 5d",
    points=points,
    roles=roles,
    judge=lambda cell, results: wrong_with_published(results, count_of(cell)),
    figures=figures,
    flood_s=flood_s,
    takes_rate=True,
    columns=(
        Column("published_per_s", "published/s", with_interval=True),
        Column("delivered_per_s", "delivered/s", with_interval=True),
        Column("megabytes_per_s", "MB/s, all"),
        Column("receiver_messages_per_s", "delivered/s, consumers' clock"),
        Column("latency_mean_us", "queued us"),
    ),
    plots=(
        Plot("Messages published (figures 5b to 5d)", "published_per_s", "messages/s", x="consumers"),
        Plot("Messages delivered", "delivered_per_s", "messages/s", x="consumers"),
        Plot("Bandwidth to all consumers", "megabytes_per_s", "MB/s", x="consumers"),
        Plot("Bandwidth by size, 32 consumers (figure 5a)", "megabytes_per_s", "MB/s", where={"consumers": 32}),
        Plot("CPU of the broker", "broker_cores", "cores", x="consumers", linear=True),
    ),
    options=(sizes_option("64,16KiB"), COUNT, CONSUMERS),
    patterns=lambda _cell: (Pattern.FANOUT,),
    quick_values={"sizes": (64,), "consumers": (1, 4, 32)},
)
