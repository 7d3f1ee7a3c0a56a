"""TE-SPSC: topic exchange, single publisher, single consumer, many patterns.

                                                                   ┌▸ queue 1, pattern 1   ══▶ ┐
    publisher  ══ N messages, one routing key ══▶  [topic exchange ▸ queue 2, pattern 2]       ├ consumer
                                                                   └▸ queue b, pattern b       ┘
    publisher  ◀── [queue ◂ direct exchange]  ◀── one empty reply, once it has N

Brokerless: an XPUB, and a SUB that subscribes to b prefixes; the XPUB looks for them, before anything is sent.

Exactly one of the b patterns matches the key, which is made sure before the start; b grows. The queues are all of one
consumer, who gets what comes through any of them: what came through a second one would be too much, and seen.
"""

from __future__ import annotations

from collections.abc import Mapping

import click

from messaging.benchmark import Asked, Benchmark, Cell, Column, Counts, Figures, Plot, Point
from messaging.options import COUNT, Numbers, sizes
from messaging.places import Places
from messaging.reckoning import flow_figures
from messaging.roles import Role, Told
from runs.errors import UserError
from transports.pattern import Pattern
from transports.topics import check_key, matches, prefixes

COUNTS = Counts(broker=50_000, brokerless=500_000, total_bytes=1 << 27)
NUMBER = "{n}"
PATTERNS = click.Option(["--patterns"], type=Numbers("patterns", 1, 8192), default="1,4,16,64,256,1024",
                        show_default=True, metavar="B[,...]", help="How many queues, with a pattern each.")  # fmt: skip
BINDING = click.Option(["--binding"], default=f"quotes.q{NUMBER}.#", show_default=True, metavar="PATTERN",
                       help="The pattern of queue {n}, from 1.")  # fmt: skip
KEY = click.Option(["--key"], default="quotes.q1.last", show_default=True, help="The routing key of all messages.")


def patterns_of(asked: Asked, patterns: int) -> tuple[str, ...]:
    return tuple(asked["binding"].replace(NUMBER, str(number)) for number in range(1, patterns + 1))


def points(asked: Asked) -> list[Point]:
    """UserError unless exactly one pattern matches, however many there are; BadAddress where one cannot be had."""
    for patterns in asked["patterns"]:
        _check(asked["key"], patterns_of(asked, patterns))
    for transport in asked["transport"]:
        _check_words(asked["key"], patterns_of(asked, max(asked["patterns"])), Cell(transport, {}, asked).has_broker)
    return [{"size_bytes": size, "patterns": patterns} for size in asked["sizes"] for patterns in asked["patterns"]]


def _check(key: str, patterns: tuple[str, ...]) -> None:
    found = [pattern for pattern in patterns if matches(pattern, key)]
    if len(found) != 1:
        shown = ", ".join(pattern[:40] for pattern in patterns[:3]) + (", ..." if len(patterns) > 3 else "")
        match = (
            f"{len(found)} of {len(patterns)} patterns ({shown}) match" if found else f"no pattern ({shown}) matches"
        )
        raise UserError(
            f"{match} the key {key[:40]!r}, and exactly one is to: "
            f"change --key or --binding, in which {NUMBER} stands for a queue's number"
        )


def _check_words(key: str, patterns: tuple[str, ...], has_broker: bool) -> None:
    for word in (key, *patterns):
        check_key(word)
    for pattern in () if has_broker else patterns:
        prefixes(pattern)


def roles(cell: Cell, places: Places) -> list[Role]:
    from messaging.published import published_roles

    patterns = patterns_of(cell.asked, cell.point["patterns"])
    (publisher,), subscriber = places.together(cell.size, Pattern.TOPIC, [(cell.asked["key"],)], patterns)
    return published_roles(cell.size, cell.count(COUNTS), publisher, subscriber)


def judge(cell: Cell, told: Mapping[str, Told]) -> list[str]:
    from messaging.published import wrong_with_published

    return wrong_with_published(told, cell.count(COUNTS))


def figures(cell: Cell, told: Mapping[str, Told]) -> Figures:
    return flow_figures(cell.size, [told["consumer"]])


BENCHMARK = Benchmark(
    name="te-spsc",
    about="one publisher, a topic exchange with b patterns, of which one matches: rate by b",
    paper="AMQP over InfiniBand (2008), 3.5 and figures 6a to 6d",
    points=points,
    roles=roles,
    judge=judge,
    figures=figures,
    columns=(
        Column("messages_per_s", "messages/s", with_interval=True),
        Column("megabytes_per_s", "MB/s"),
        Column("latency_mean_us", "mean us"),
    ),
    plots=(
        Plot("Message rate", "messages_per_s", "messages/s", x="patterns", x_unit="patterns"),
        Plot("Bandwidth", "megabytes_per_s", "MB/s", x="patterns", x_unit="patterns"),
    ),
    options=(sizes("64,16KiB"), COUNT, PATTERNS, BINDING, KEY),
    patterns=lambda _cell: (Pattern.TOPIC,),
    quick={"sizes": (64,), "patterns": (1, 32, 1024)},
)
