"""`exchange bench role`: the options of one role that is started by hand."""

from __future__ import annotations

from typing import Any

import click

from messaging.benchmarks.te_spsc import BINDING, KEY
from messaging.options import SAMPLE_SECONDS, SIZE, timeout_option
from runs.option_types import Count
from runs.options import json_option, options_for, together
from transports.base import Pattern

LISTENER = {
    Pattern.QUEUE: "consume", Pattern.FANOUT: "publish", Pattern.TOPIC: "publish", Pattern.REQUESTS: "answer",
}  # fmt: skip
"""The role that listens, by pattern; in a pair either role may listen."""
PATTERNS = {"publish": ("pair", "queue", "fanout", "topic"), "ask": ("pair", "requests")}
PATTERNS |= {"consume": PATTERNS["publish"], "answer": PATTERNS["ask"]}
MANY = click.IntRange(1, 10_000)
_options = together([
    click.argument("part", type=click.Choice(list(PATTERNS))),
    click.option("--pattern", type=click.Choice(list(dict.fromkeys(sum(PATTERNS.values(), ())))), default="pair",
                 show_default=True, help="Who talks to whom: a pair (de-spsc, de-pp), a shared queue (perftest), ..."),
    click.option("--listen", metavar="URL", help="Listen here: for consume, answer, and publish to many."),
    click.option("--connect", metavar="URL", help="Connect to the listener; over a broker both roles name the broker."),
    click.option("--run", "token", required=True, help="A name; a peer that does not know it is refused."),
    click.option("--size", type=SIZE, default="64", show_default=True, help="Of a message."),
    click.option("--count", type=Count(2, 1 << 39), default="100k", show_default=True,
                 help="Messages of each publisher, or of a pair."),
    click.option("--consumers", type=MANY, default=1, show_default=True, help="Subscribers that publish waits for."),
    click.option("--publishers", type=MANY, default=1, show_default=True, help="Of a queue; consumers need it too."),
    click.option("--number", type=MANY, default=1, show_default=True, help="Of a queue: which of its publishers."),
    click.option("--patterns", type=MANY, default=1, show_default=True, help="Of a topic's consumer."),
    click.option("--threads", type=MANY, default=1, show_default=True,
                 help="Threads of ask; for answer, the threads of all that ask."),
    click.option("--warm-up", "warm_up_s", type=SAMPLE_SECONDS, default=0.5, show_default=True,
                 help="Seconds of ask before its sample."),
    click.option("--sample", "sample_s", type=SAMPLE_SECONDS, default=2.0, show_default=True,
                 help="Seconds of ask's sample."),
    options_for("secure", "insecure"),
    timeout_option,
    json_option,
])  # fmt: skip


def role_command() -> click.Command:
    @_options
    def run(
        part: str, pattern: str, listen: str | None, connect: str | None, as_json: bool, secure: str | None,
        insecure: bool, **given: Any,
    ) -> None:  # fmt: skip
        """One role on a host of its own: publish, consume, ask or answer.

        Example: exchange bench role consume --listen tcp://0.0.0.0:7000 --run first --secure DIR
        """
        from messaging.by_hand import play_by_hand
        from runs.transport_settings import check_exposure, with_keys

        _check(part, Pattern(pattern), listen, connect)
        listen, connect = (url and with_keys(url, secure) for url in (listen, connect))
        if listen:
            check_exposure(listen, insecure)
        raise SystemExit(play_by_hand(part, Pattern(pattern), listen, connect, given, as_json))

    command = click.command("role", short_help="one role on a host of its own")(run)
    command.params += [BINDING, KEY]
    return command


def _check(part: str, pattern: Pattern, listen: str | None, connect: str | None) -> None:
    if pattern.value not in PATTERNS[part]:
        raise click.UsageError(f"--pattern {pattern.value} is not of {part}, which has {', '.join(PATTERNS[part])}")
    if (listen is None) == (connect is None):
        raise click.UsageError("give one of --listen and --connect: where this role is, or where the other one is")
    listener = LISTENER.get(pattern, part if listen else "")
    if (part == listener) != (listen is not None):
        raise click.UsageError(
            f"with --pattern {pattern.value} the role {listener} takes --listen, and the other role --connect"
        )
