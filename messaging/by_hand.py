"""`exchange bench role`: one role on a host of its own, started by hand; the listener is started first.

    host A    exchange bench role consume --listen tcp://0.0.0.0:7000 --run first --secure DIR --size 64
    host B    exchange bench role publish --connect tcp://hosta:7000 --run first --secure DIR --size 64

No launcher compares the two: each prints how many messages it has, and their checksum, and both have to agree. If
several roles share a queue, the sums of their checksums have to agree, modulo 2^64.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping
from multiprocessing import Pipe
from typing import Any

import click
import orjson

from exchange.results import Usage
from messaging.benchmark import Figures
from messaging.benchmarks.te_spsc import patterns_of
from messaging.flow import Consume, ConsumeShared, Publish, rest_s
from messaging.report import short
from messaging.requests import Answer, AnswerAll, Ask, AskOwn, bounce_figures, reply_figures
from messaging.roles import LINGER_S, LinkEnd, RoleResult, Task, open_link
from messaging.session import OPEN_NS, Session
from messaging.streams import flow_figures
from runs.component import settle_down
from runs.errors import UserError, sentence
from runs.services import link_token
from transports.base import PUBLISHED, BadAddress, CannotListen, Link, Pattern, PeerGone, TransportError

NO_CHECKSUM = f"{0:016x}"
"""The checksum of zero messages."""
Given = Mapping[str, Any]
"""Values of the command's options."""
TASKS: dict[tuple[str, Pattern], Callable[[Given], Task]] = {
    ("publish", Pattern.PAIR): lambda given: Publish(given["size"], given["count"]),
    ("consume", Pattern.PAIR): lambda given: Consume(given["size"], given["count"]),
    ("ask", Pattern.PAIR): lambda given: Ask(given["size"], given["count"]),
    ("answer", Pattern.PAIR): lambda given: Answer(given["size"], given["count"]),
    ("publish", Pattern.QUEUE): lambda given: Publish(given["size"], given["count"], 0, given["number"] - 1),
    ("consume", Pattern.QUEUE): lambda given: ConsumeShared(given["size"], given["publishers"], rest_s(1)),
    ("ask", Pattern.REQUESTS): lambda given: AskOwn(given["size"], given["warm_up_s"], given["sample_s"]),
    ("answer", Pattern.REQUESTS): lambda given: AnswerAll(given["size"], given["threads"]),
}
for _pattern in PUBLISHED:
    TASKS["publish", _pattern] = lambda given: Publish(
        given["size"], given["count"], given["consumers"], subscribers=given["consumers"]
    )
    TASKS["consume", _pattern] = TASKS["consume", Pattern.PAIR]


class SessionAlone(Session):
    """A session without a launcher: a role that shares a queue ends once patience is over.

    Before the first message it waits longer, for as long as other roles may take to come.
    """

    _others_come_ns = OPEN_NS

    def serve(self, link: Link) -> None:
        """Serve the links, also after a publisher has left: another one may still come."""
        with contextlib.suppress(PeerGone):
            super().serve(link)

    def report_progress(self, received: int) -> None:  # noqa: ARG002
        self._others_come_ns = 0
        self.progressed()

    @property
    def must_stop(self) -> bool:
        return time.monotonic_ns() > self._until_ns + self._others_come_ns


def play_by_hand(
    part: str, pattern: Pattern, listen: str | None, connect: str | None, given: Given, as_json: bool
) -> int:
    """Play one role and print its result; returns the exit code: 1 if the role did not finish."""
    url = listen or connect or ""
    token, keys = link_token(given["token"], url), _keys(part, pattern, given)
    end = LinkEnd(url, token, listen is not None, pattern, keys)
    links = given["threads"] if part == "ask" and pattern is Pattern.REQUESTS else 1
    try:
        result = _play(part, end, links, given)
    except (TransportError, OSError) as error:
        mistake = isinstance(error, BadAddress | CannotListen)
        raise (UserError if mistake else click.ClickException)(sentence(error)) from error
    if pattern is Pattern.QUEUE:
        result.wrong.pop("left out", None)  # other consumers got it
    _show(part, pattern, given, result, as_json)
    return 1 if result.stopped or result.wrong else 0


def _keys(part: str, pattern: Pattern, given: Given) -> tuple[str, ...]:
    if pattern is not Pattern.TOPIC:
        return ()
    return (given["key"],) if part == "publish" else patterns_of(given, given["patterns"])


def _play(part: str, end: LinkEnd, number: int, given: Given) -> RoleResult:
    """Open this end of the given number of links, and do the role's task."""
    with contextlib.ExitStack() as stack:
        links = [open_link(end, stack) for _ in range(number)]
        click.echo(f"{part}: {'listens on' if end.listens else 'connects to'} {links[0].url}", err=True)
        settle_down()
        start = Usage.now()
        result = TASKS[part, end.pattern](given)(SessionAlone(links, Pipe()[0], given["timeout_s"]))
        result.usage = Usage.now().since(start)
        for link in links:
            link.drain(time.monotonic_ns() + int(LINGER_S * 1e9))
    if part == "consume" and not result.received:
        result.stopped = result.stopped or f"nothing came for {given['timeout_s']:g} s"
    return result


def _figures(part: str, pattern: Pattern, given: Given, result: RoleResult) -> Figures:
    """Figures of this side only: one-way latency would compare the clocks of two hosts."""
    if part == "ask" and pattern is Pattern.PAIR:
        return bounce_figures(given["size"], result)
    if part == "ask":
        return reply_figures(given["size"], [result], given["sample_s"])
    found = flow_figures(given["size"], [result]) if part == "consume" else {}
    return {name: value for name, value in found.items() if not name.startswith("latency")}


def _show(part: str, pattern: Pattern, given: Given, result: RoleResult, as_json: bool) -> None:
    counts: dict[str, Any] = {
        "sent": result.sent, "sent_checksum": f"{result.sent_checksum:016x}", "received": result.received,
        "received_checksum": f"{result.received_checksum:016x}", "wrong": result.wrong, "stopped": result.stopped,
    }  # fmt: skip
    figures = _figures(part, pattern, given, result)
    if as_json:
        click.echo(orjson.dumps({"part": part, **counts, "figures": figures, "usage": result.usage}))
        return
    for name, value in (*counts.items(), *((name, short(value)) for name, value in figures.items())):
        if value and value != NO_CHECKSUM:
            click.echo(f"{name:<24} {value}")
