"""`exchange bench role`: one role on a host of its own, started by hand; the listener is started first.

    host A    exchange bench role consume --listen tcp://0.0.0.0:7000 --run first --secure DIR --size 64
    host B    exchange bench role publish --connect tcp://hosta:7000 --run first --secure DIR --size 64

No launcher compares the two roles. Each prints the number of its messages and their checksum, and the user sees whether
both agree. If several roles share a queue, the sums of their checksums must agree, modulo 2^64.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping
from multiprocessing import Pipe
from typing import Any

import click
import orjson

from exchange.results import ResourceUsage
from exchange.unique import unique
from exchange_simulation.launching.component import settle_down
from exchange_simulation.launching.errors import UserError, sentence
from exchange_simulation.launching.option_types import Count, OneOf
from exchange_simulation.launching.options import json_option, options_for, together
from exchange_simulation.launching.services import link_token
from exchange_simulation.launching.transport_checks import check_exposure
from exchange_simulation.launching.transport_urls import with_keys
from exchange_simulation.messaging.benchmarks.te_spsc import BINDING, KEY, patterns_of
from exchange_simulation.messaging.cell import Figures
from exchange_simulation.messaging.flow import Consume, ConsumeShared, Publish, rest_s
from exchange_simulation.messaging.options import SAMPLE_SECONDS, SIZE, timeout_option
from exchange_simulation.messaging.report import short
from exchange_simulation.messaging.requests import (
    Answer,
    Ask,
    RequestServer,
    ThreadedClient,
    bounce_figures,
    reply_figures,
)
from exchange_simulation.messaging.roles import LINGER_S, LinkEnd, RoleResult, Task, open_links
from exchange_simulation.messaging.session import OPEN_NS, Session
from exchange_simulation.messaging.streams import flow_figures
from transports.base import (
    PUBLISHING_PATTERNS,
    BadAddress,
    CannotListen,
    Link,
    Pattern,
    PeerGone,
    TransportError,
    excuse_of,
)

_LISTENER = {
    Pattern.QUEUE: "consume",
    Pattern.FANOUT: "publish",
    Pattern.TOPIC: "publish",
    Pattern.REQUESTS: "answer",
}
"""The role that listens, by pattern; in a pair either role may listen."""
_PATTERNS = {
    "publish": ("pair", "queue", "fanout", "topic"),
    "consume": ("pair", "queue", "fanout", "topic"),
    "ask": ("pair", "requests"),
    "answer": ("pair", "requests"),
}
"""The patterns that each role takes."""
_MANY = click.IntRange(1, 10_000)
_options = together(
    [
        click.argument("role", type=OneOf(list(_PATTERNS))),
        click.option(
            "--pattern",
            type=OneOf(unique([*_PATTERNS["publish"], *_PATTERNS["ask"]])),
            default="pair",
            show_default=True,
            help="Who talks to whom: a pair (de-spsc, de-pp), a shared queue (perftest), ...",
        ),
        click.option("--listen", metavar="URL", help="Listen here: for consume, answer, and publish to many."),
        click.option(
            "--connect", metavar="URL", help="Connect to the listener; over a broker both roles name the broker."
        ),
        click.option("--run", "token", required=True, help="A name; a peer that does not know it is refused."),
        click.option("--size", type=SIZE, default="64", show_default=True, help="Size of a message."),
        click.option(
            "--count",
            type=Count(2, 1 << 39),
            default="100k",
            show_default=True,
            help="Messages of each publisher, or of a pair.",
        ),
        click.option(
            "--consumers", type=_MANY, default=1, show_default=True, help="Subscribers that publish waits for."
        ),
        click.option("--publishers", type=_MANY, default=1, show_default=True, help="Publishers of a queue."),
        click.option(
            "--number", type=_MANY, default=1, show_default=True, help="This publisher's number in its queue."
        ),
        click.option("--patterns", type=_MANY, default=1, show_default=True, help="Patterns of a topic's consumer."),
        click.option(
            "--threads",
            type=_MANY,
            default=1,
            show_default=True,
            help="Threads of ask; for answer, the threads of all that ask.",
        ),
        click.option(
            "--warm-up",
            "warm_up_s",
            type=SAMPLE_SECONDS,
            default=0.5,
            show_default=True,
            help="Seconds of ask before its sample.",
        ),
        click.option(
            "--sample", "sample_s", type=SAMPLE_SECONDS, default=2.0, show_default=True, help="Seconds of ask's sample."
        ),
        options_for("secure", "insecure"),
        timeout_option,
        json_option,
    ]
)


def role_command() -> click.Command:
    @_options
    def run(
        role: str,
        pattern: str,
        listen: str | None,
        connect: str | None,
        as_json: bool,
        secure: str | None,
        insecure: bool,
        **given: Any,
    ) -> None:
        """One role on a host of its own: publish, consume, ask or answer.

        Example: exchange bench role consume --listen tcp://0.0.0.0:7000 --run first --secure DIR
        """
        _check(role, Pattern(pattern), listen, connect)
        listen = with_keys(listen, secure) if listen else listen
        connect = with_keys(connect, secure) if connect else connect
        if listen:
            check_exposure(listen, insecure)
        raise SystemExit(_play_and_show(role, Pattern(pattern), listen, connect, given, as_json))

    command = click.command("role", short_help="one role on a host of its own")(run)
    command.params += [BINDING, KEY]
    return command


def _check(role: str, pattern: Pattern, listen: str | None, connect: str | None) -> None:
    """UsageError if the role has no such pattern, or if the wrong role listens."""
    if pattern.value not in _PATTERNS[role]:
        raise click.UsageError(f"--pattern {pattern.value} is not of {role}, which has {', '.join(_PATTERNS[role])}")
    if (listen is None) == (connect is None):
        raise click.UsageError("give one of --listen and --connect: where this role is, or where the other one is")
    listener = _LISTENER.get(pattern, role if listen else "")
    if (role == listener) != (listen is not None):
        raise click.UsageError(
            f"with --pattern {pattern.value} the role {listener} takes --listen, and the other role --connect"
        )


_NO_CHECKSUM = f"{0:016x}"
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
    ("ask", Pattern.REQUESTS): lambda given: ThreadedClient(given["size"], given["warm_up_s"], given["sample_s"]),
    ("answer", Pattern.REQUESTS): lambda given: RequestServer(given["size"], given["threads"]),
}
for _pattern in PUBLISHING_PATTERNS:
    TASKS["publish", _pattern] = lambda given: Publish(
        given["size"], given["count"], given["consumers"], subscribers=given["consumers"]
    )
    TASKS["consume", _pattern] = TASKS["consume", Pattern.PAIR]


class _SessionAlone(Session):
    """A session without a launcher: a role that shares a queue ends once it has waited too long."""

    _others_come_ns = OPEN_NS
    """Additional waiting time before the first message, since other roles take time to come."""

    def serve(self, link: Link) -> None:
        """Serve the links even if all publishers have left, since another publisher may come."""
        with contextlib.suppress(PeerGone):
            super().serve(link)

    def report_progress(self, received: int) -> None:  # noqa: ARG002
        self._others_come_ns = 0
        self.progressed()

    @property
    def must_stop(self) -> bool:
        return time.monotonic_ns() > self._give_up_ns + self._others_come_ns


def _play_and_show(
    role: str, pattern: Pattern, listen: str | None, connect: str | None, given: Given, as_json: bool
) -> int:
    """Play one role and print its result; returns the exit code: 1 if the role did not finish."""
    url = listen or connect or ""
    token = link_token(given["token"], url)
    keys = _keys(role, pattern, given)
    end = LinkEnd(url, token, listen is not None, pattern, keys)
    links = given["threads"] if role == "ask" and pattern is Pattern.REQUESTS else 1
    try:
        result = _play(role, end, links, given)
    except (TransportError, OSError) as error:
        if isinstance(error, BadAddress | CannotListen):
            raise UserError(sentence(error)) from error
        raise click.ClickException(sentence(error)) from error
    if pattern is Pattern.QUEUE:
        result.wrong.pop("left out", None)  # other consumers of the queue got these messages
    _show(role, pattern, given, result, as_json)
    return 1 if result.stopped or result.wrong else 0


def _keys(role: str, pattern: Pattern, given: Given) -> tuple[str, ...]:
    """The routing key of a topic's publisher, or the patterns of its consumer."""
    if pattern is not Pattern.TOPIC:
        return ()
    if role == "publish":
        return (given["key"],)
    return patterns_of(given, given["patterns"])


def _play(role: str, end: LinkEnd, number: int, given: Given) -> RoleResult:
    """Open this end of the given number of links, and do the role's task."""
    with contextlib.ExitStack() as stack:
        links = open_links([end] * number, stack)
        click.echo(f"{role}: {'listens on' if end.listens else 'connects to'} {links[0].url}", err=True)
        settle_down()
        start = ResourceUsage.now()
        task = TASKS[role, end.pattern](given)
        result = task(_SessionAlone(links, Pipe()[0], given["timeout_s"]))
        result.usage = ResourceUsage.now().since(start)
        excuse = excuse_of(links)
        for link in links:
            link.drain(time.monotonic_ns() + int(LINGER_S * 1e9))
    if role == "consume" and not result.received:
        waited_s = given["timeout_s"]
        if end.pattern is Pattern.QUEUE:
            waited_s += OPEN_NS / 1e9  # see _SessionAlone
        result.stopped = result.stopped or f"nothing came for {waited_s:g} s{excuse}"
    return result


def _figures(role: str, pattern: Pattern, given: Given, result: RoleResult) -> Figures:
    """Figures of this side only: one-way latency would compare the clocks of two hosts."""
    if role == "ask" and pattern is Pattern.PAIR:
        return bounce_figures(given["size"], result)
    if role == "ask":
        return reply_figures(given["size"], [result], given["sample_s"])
    figures = flow_figures(given["size"], [result]) if role == "consume" else {}
    return {name: value for name, value in figures.items() if not name.startswith("latency")}


def _show(role: str, pattern: Pattern, given: Given, result: RoleResult, as_json: bool) -> None:
    """Print what the role counted, and its figures."""
    counts: dict[str, Any] = {
        "sent": result.sent,
        "sent_checksum": f"{result.sent_checksum:016x}",
        "received": result.received,
        "received_checksum": f"{result.received_checksum:016x}",
        "wrong": result.wrong,
        "stopped": result.stopped,
    }
    figures = _figures(role, pattern, given, result)
    if as_json:
        click.echo(orjson.dumps({"part": role, **counts, "figures": figures, "usage": result.usage}))
        return
    shown = {**counts, **{name: short(value) for name, value in figures.items()}}
    for name, value in shown.items():
        if value and value != _NO_CHECKSUM:
            click.echo(f"{name:<24} {value}")
