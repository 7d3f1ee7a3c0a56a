"""`exchange bench role`: one role, on a host of its own, started by hand; who listens is started first.

    host A    exchange bench role consume --listen tcp://0.0.0.0:7000 --run first --size 64 --count 100000
    host B    exchange bench role publish --connect tcp://hosta:7000 --run first --size 64 --count 100000

No launcher holds the two against each other: each prints how many and their checksum, which are to be the same; of
several who share a queue their sums, modulo 2^64.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping
from multiprocessing import Pipe
from typing import Any

import click
import orjson

from exchange.usage import Usage
from messaging.asking_own import AnswerAll, AskOwn
from messaging.benchmark import Figures
from messaging.benchmarks.te_spsc import patterns_of
from messaging.bounce import Answer, Ask
from messaging.flow import Consume, ConsumeShared, Publish, rest_s
from messaging.player import LINGER_S, OPEN_NS, Player, opened
from messaging.published import PublishToAll
from messaging.reckoning import bounce_figures, flow_figures, reply_figures
from messaging.roles import End, Part, Told
from messaging.words import short
from runs.component import settle_down
from runs.errors import UserError, sentence
from transports.base import BadAddress, CannotListen, Link, PeerGone, TransportError
from transports.pattern import Pattern

NOTHING = f"{0:016x}"
"""The checksum of no message."""
Given = Mapping[str, Any]
PARTS: dict[tuple[str, Pattern], Callable[[Given], Part]] = {
    ("publish", Pattern.PAIR): lambda given: Publish(given["size"], given["count"]),
    ("consume", Pattern.PAIR): lambda given: Consume(given["size"], given["count"]),
    ("ask", Pattern.PAIR): lambda given: Ask(given["size"], given["count"]),
    ("answer", Pattern.PAIR): lambda given: Answer(given["size"], given["count"]),
    ("publish", Pattern.QUEUE): lambda given: Publish(given["size"], given["count"], 0, given["number"] - 1),
    ("consume", Pattern.QUEUE): lambda given: ConsumeShared(given["size"], given["publishers"], rest_s(1)),
    ("ask", Pattern.REQUESTS): lambda given: AskOwn(given["size"], given["warm_up_s"], given["sample_s"]),
    ("answer", Pattern.REQUESTS): lambda given: AnswerAll(given["size"], given["threads"]),
}
for _pattern in (Pattern.FANOUT, Pattern.TOPIC):
    PARTS["publish", _pattern] = lambda given: PublishToAll(
        given["size"], given["count"], given["consumers"], subscribers=given["consumers"]
    )
    PARTS["consume", _pattern] = PARTS["consume", Pattern.PAIR]


class Alone(Player):
    """Without a crew: who shares a queue is at its end once nothing has come for as long as patience lasts.

    The first message may take as long as others take to come.
    """

    _others_come_ns = OPEN_NS

    def serve(self, link: Link) -> None:
        """One publisher may have gone before the next comes."""
        with contextlib.suppress(PeerGone):
            super().serve(link)

    def say_progress(self, received: int) -> None:  # noqa: ARG002
        self._others_come_ns = 0
        self.progressed()

    @property
    def is_told_to_stop(self) -> bool:
        return time.monotonic_ns() > self._until_ns + self._others_come_ns


def play_by_hand(
    part: str, pattern: Pattern, listen: str | None, connect: str | None, given: Given, as_json: bool
) -> int:
    """The exit code: 1 where it did not come to its end."""
    end = End(listen or connect or "", given["token"], listen is not None, pattern, _keys(part, pattern, given))
    links = given["threads"] if part == "ask" and pattern is Pattern.REQUESTS else 1
    try:
        told = _played(part, end, links, given)
    except (TransportError, OSError) as error:
        mistake = isinstance(error, BadAddress | CannotListen)
        raise (UserError if mistake else click.ClickException)(sentence(error)) from error
    if pattern is Pattern.QUEUE:
        told.wrong.pop("left out", None)  # it was dealt to others
    _show(part, pattern, given, told, as_json)
    return 1 if told.stopped or told.wrong else 0


def _keys(part: str, pattern: Pattern, given: Given) -> tuple[str, ...]:
    if pattern is not Pattern.TOPIC:
        return ()
    return (given["key"],) if part == "publish" else patterns_of(given, given["patterns"])


def _played(part: str, end: End, links: int, given: Given) -> Told:
    with contextlib.ExitStack() as held:
        opened_links = [opened(end, held) for _ in range(links)]
        click.echo(f"{part}: {'listens on' if end.listens else 'connects to'} {opened_links[0].url}", err=True)
        settle_down()
        crew, _ = Pipe()
        start = Usage.now()
        told = PARTS[part, end.pattern](given)(Alone(opened_links, crew, given["timeout_s"]))
        told.usage = Usage.now().since(start)
        for link in opened_links:
            link.drain(time.monotonic_ns() + int(LINGER_S * 1e9))
    if part == "consume" and not told.received:
        told.stopped = told.stopped or f"nothing came for {given['timeout_s']:g} s"
    return told


def _figures(part: str, pattern: Pattern, given: Given, told: Told) -> Figures:
    """What one side alone can say: latency of one way would be between two hosts' clocks."""
    if part == "ask":
        return (
            bounce_figures(given["size"], told)
            if pattern is Pattern.PAIR
            else reply_figures(given["size"], [told], given["sample_s"])
        )
    found = flow_figures(given["size"], [told]) if part == "consume" else {}
    return {name: value for name, value in found.items() if not name.startswith("latency")}


def _show(part: str, pattern: Pattern, given: Given, told: Told, as_json: bool) -> None:
    counts: dict[str, Any] = {
        "sent": told.sent, "sent_checksum": f"{told.sent_checksum:016x}", "received": told.received,
        "received_checksum": f"{told.received_checksum:016x}", "wrong": told.wrong, "stopped": told.stopped,
    }  # fmt: skip
    figures = _figures(part, pattern, given, told)
    if as_json:
        click.echo(orjson.dumps({"part": part, **counts, "figures": figures, "usage": told.usage}))
        return
    for name, value in (*counts.items(), *((name, short(value)) for name, value in figures.items())):
        if value and value != NOTHING:
            click.echo(f"{name:<24} {value}")
