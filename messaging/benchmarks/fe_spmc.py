"""FE-SPMC: fanout exchange, single publisher, multiple consumers.

                                                      ┌▸ queue 1 ══▶ consumer 1
    publisher  ══ N messages of a size ══▶  [fanout exchange ▸ queue 2]  ══▶ consumer 2
                                                      └▸ queue c ══▶ consumer c
    publisher  ◀── [queue ◂ direct exchange]  ◀── one empty reply of each, once it has N

Brokerless: an XPUB and c SUBs; PUSHes to a PULL for the replies. The publisher begins once all have subscribed, and
waits for the slowest, so that nothing is lost.

Every consumer gets every message and replies after N; c grows. Delivered are the messages of all consumers together,
from the first that one had to the last that one had; published is what of them each consumer got, in the same time.
"""

from __future__ import annotations

from collections.abc import Mapping

import click

from messaging.benchmark import Asked, Benchmark, Cell, Column, Counts, Figures, Plot, Point
from messaging.descriptors import check_descriptors
from messaging.options import COUNT, Numbers, sizes
from messaging.places import Places
from messaging.reckoning import flow_figures
from messaging.roles import Role, Told
from messaging.streams import consumers_of
from transports.pattern import Pattern

COUNTS = Counts(broker=80_000, brokerless=800_000, total_bytes=1 << 28)
CONSUMERS = click.Option(["--consumers"], type=Numbers("consumers", 1, 1024), default="1,2,4,8,16,32",
                         show_default=True, metavar="C[,...]", help="How many get each message.")  # fmt: skip


def points(asked: Asked) -> list[Point]:
    """UserError where there are more consumers than the publisher can have connections to: two each, brokerless."""
    most = max(asked["consumers"])
    check_descriptors(2 * most, f"{most} consumers need up to two descriptors each at their publisher")
    return [{"size_bytes": size, "consumers": consumers} for size in asked["sizes"] for consumers in asked["consumers"]]


def count_of(cell: Cell) -> int:
    """Where the user did not say it, so many fewer as there are more who get each."""
    return cell.count(COUNTS) if cell.asked.get("count") else max(8, cell.count(COUNTS) // cell.point["consumers"])


def roles(cell: Cell, places: Places) -> list[Role]:
    from messaging.published import published_roles

    consumers = cell.point["consumers"]
    (publisher,), subscriber = places.together(cell.size * consumers, Pattern.FANOUT)
    return published_roles(cell.size, count_of(cell), publisher, subscriber, consumers)


def judge(cell: Cell, told: Mapping[str, Told]) -> list[str]:
    from messaging.published import wrong_with_published

    return wrong_with_published(told, count_of(cell), cell.point["consumers"])


def figures(cell: Cell, told: Mapping[str, Told]) -> Figures:
    found = flow_figures(cell.size, consumers_of(told))
    if not found:
        return {}
    delivered_per_s = found.pop("messages_per_s")
    return {"delivered_per_s": delivered_per_s, "published_per_s": delivered_per_s / cell.point["consumers"], **found}


BENCHMARK = Benchmark(
    name="fe-spmc",
    about="one publisher, a fanout exchange, c consumers: rates published and delivered, by c",
    paper="AMQP over InfiniBand (2008), 3.4 and figures 5a to 5d",
    points=points,
    roles=roles,
    judge=judge,
    figures=figures,
    columns=(
        Column("published_per_s", "published/s", with_interval=True),
        Column("delivered_per_s", "delivered/s", with_interval=True),
        Column("megabytes_per_s", "MB/s, all"),
        Column("latency_mean_us", "mean us"),
    ),
    plots=(
        Plot("Messages published", "published_per_s", "messages/s", x="consumers", x_unit="consumers"),
        Plot("Messages delivered", "delivered_per_s", "messages/s", x="consumers", x_unit="consumers"),
        Plot("Bandwidth to all consumers", "megabytes_per_s", "MB/s", x="consumers", x_unit="consumers"),
        Plot("CPU of the broker", "broker_cores", "cores", x="consumers", x_unit="consumers", linear=True),
    ),
    options=(sizes("64,16KiB"), COUNT, CONSUMERS),
    patterns=lambda _cell: (Pattern.FANOUT,),
    quick={"sizes": (64,), "consumers": (1, 4, 32)},
)
