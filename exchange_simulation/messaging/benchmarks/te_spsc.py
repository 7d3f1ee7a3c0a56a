"""TE-SPSC: topic exchange, single publisher, single consumer, many patterns.

                                                                   ┌▸ queue 1, pattern 1   ══▶ ┐
    publisher  ══ N messages, one routing key ══▶  [topic exchange ▸ queue 2, pattern 2]       ├ consumer
                                                                   └▸ queue b, pattern b       ┘
    publisher  ◀── [queue ◂ direct exchange]  ◀── one empty reply, once it has N

Brokerless: an XPUB, and a SUB that subscribes to b prefixes; the XPUB compares them before it sends anything.
"""

from __future__ import annotations

from dataclasses import replace

import click

from exchange_simulation.launching.errors import UserError
from exchange_simulation.launching.option_types import OneOf
from exchange_simulation.messaging.benchmark import BenchmarkDefinition
from exchange_simulation.messaging.cell import Cell, Counts
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
from transports.topics import check_key, matches, prefixes

COUNTS = Counts(broker=50_000, brokerless=500_000, total_bytes=1 << 27)
NUMBER = "{n}"
"""Stands for the number of a queue in `--binding`."""
ONE = "one"
EACH = "each"
CONSUMERS = click.Option(
    ["--consumers"],
    type=OneOf((ONE, EACH)),
    default=ONE,
    show_default=True,
    help="One consumer of all queues, or one of each, as in the paper.",
)
PATTERNS = numbers_option(
    "--patterns",
    noun="patterns",
    most=8192,
    default="1,4,16,64,256,1024",
    metavar="B[,...]",
    help="How many queues, with a pattern each.",
)
BINDING = click.Option(
    ["--binding"],
    default=f"quotes.q{NUMBER}.#",
    show_default=True,
    metavar="PATTERN",
    help="The pattern of queue {n}, from 1.",
)
KEY = click.Option(["--key"], default="quotes.q1.last", show_default=True, help="The routing key of all messages.")


def patterns_of(settings: Settings, patterns: int) -> tuple[str, ...]:
    """The patterns of the first queues, as many as `patterns`."""
    return tuple(settings["binding"].replace(NUMBER, str(number)) for number in range(1, patterns + 1))


def points(settings: Settings) -> list[Point]:
    """A point for each size and number of patterns.

    UserError unless exactly one pattern matches the key at each number. BadAddress if a pattern is impossible.
    """
    key = settings["key"]
    all_patterns = patterns_of(settings, max(settings["patterns"]))
    for number in settings["patterns"]:
        _check_matching(key, all_patterns[:number])
    check_key(key)
    for pattern in all_patterns:
        check_key(pattern)
    if not all(map(has_broker, settings["transport"])):
        for pattern in all_patterns:
            prefixes(pattern)  # BadAddress for a pattern that no prefixes can stand for
        if settings.get("consumers") == EACH:
            consumers = len(all_patterns)
            check_descriptors(
                2 * consumers, f"{consumers} consumers need up to two descriptors each at their publisher"
            )
    return by_size_and("patterns")(settings)


def _check_matching(key: str, patterns: tuple[str, ...]) -> None:
    """UserError unless exactly one pattern matches the key."""
    matching = [pattern for pattern in patterns if matches(pattern, key)]
    if len(matching) == 1:
        return
    shown = ", ".join(pattern[:40] for pattern in patterns[:3])
    if len(patterns) > 3:
        shown += ", ..."
    if matching:
        problem = f"{len(matching)} of {len(patterns)} patterns ({shown}) match"
    else:
        problem = f"no pattern ({shown}) matches"
    raise UserError(
        f"{problem} the key {key[:40]!r}, and exactly one is to: "
        f"change --key or --binding, in which {NUMBER} stands for a queue's number"
    )


def roles(cell: Cell, links: Links) -> list[Role]:
    patterns = patterns_of(cell.settings, cell.point["patterns"])
    key = cell.settings["key"]
    if cell.settings.get("consumers") == EACH:
        patterns_of_consumer = tuple(pattern for pattern in patterns if matches(pattern, key))
        patterns_of_idle = [pattern for pattern in patterns if not matches(pattern, key)]
    else:
        patterns_of_consumer = patterns
        patterns_of_idle = []
    (publisher,), subscriber = links.many(cell.size, Pattern.TOPIC, [(key,)], patterns_of_consumer)
    idle = [replace(subscriber, keys=(pattern,)) for pattern in patterns_of_idle]
    return published_roles(cell, cell.count(COUNTS), publisher, [subscriber], idle)


BENCHMARK = BenchmarkDefinition(
    about="one publisher, a topic exchange with b patterns, of which one matches: rate by b",
    paper="AMQP over InfiniBand, 3.5 and figures 6a to 6d",
    points=points,
    roles=roles,
    judge=lambda cell, results: wrong_with_published(results, cell.count(COUNTS)),
    figures=lambda cell, results: by_publishers_clock(cell.size, results, published_figures(cell.size, results)),
    flood_s=COUNTS.flood_s,
    takes_rate=True,
    columns=(
        Column("messages_per_s", "messages/s", with_interval=True),
        Column("megabytes_per_s", "MB/s"),
        Column("receiver_messages_per_s", "receiver's clock"),
        Column("latency_mean_us", "queued us"),
    ),
    plots=(
        Plot("Message rate (figures 6b to 6d)", "messages_per_s", "messages/s", x="patterns"),
        Plot("Bandwidth", "megabytes_per_s", "MB/s", x="patterns"),
        Plot("Bandwidth by size, 1,024 patterns (figure 6a)", "megabytes_per_s", "MB/s", where={"patterns": 1024}),
    ),
    options=(sizes_option("64,16KiB"), COUNT, PATTERNS, CONSUMERS, BINDING, KEY),
    patterns=lambda _cell: (Pattern.TOPIC,),
    quick_values={"sizes": (64,), "patterns": (1, 32, 1024)},
)
