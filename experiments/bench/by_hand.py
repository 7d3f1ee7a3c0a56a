"""`exchange bench role`: one role, on a host of its own, started by hand; who listens is started first.

    host A    exchange bench role consume --listen tcp://0.0.0.0:7000 --run first --size 64 --count 100000
    host B    exchange bench role publish --connect tcp://hosta:7000 --run first --size 64 --count 100000

No launcher holds the two against each other: each prints how many and their checksum, which are to be the same.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from multiprocessing import Pipe
from typing import Any

import click
import orjson

from exchange.usage import Usage
from experiments.bench.benchmark import Figures
from experiments.bench.bounce import Answer, Ask
from experiments.bench.flow import Consume, Publish
from experiments.bench.player import LINGER_S, Player, opened
from experiments.bench.reckoning import bounce_figures, flow_figures
from experiments.bench.roles import End, Part, Told
from experiments.bench.words import short
from experiments.component import sentence, settle_down
from experiments.errors import UserError
from transports.base import BadAddress, CannotListen, TransportError

NOTHING = f"{0:016x}"
"""The checksum of no message."""
PARTS: dict[str, Callable[[int, int], Part]] = {"publish": Publish, "consume": Consume, "ask": Ask, "answer": Answer}


def play_by_hand(part: str, end: End, size: int, count: int, timeout_s: float, as_json: bool) -> int:
    """The exit code: 1 where it did not come to its end."""
    try:
        with contextlib.ExitStack() as held:
            link = opened(end, held)
            click.echo(f"{part}: {'listens on' if end.listens else 'connects to'} {link.url}", err=True)
            settle_down()
            crew, _ = Pipe()
            start = Usage.now()
            told = PARTS[part](size, count)(Player([link], crew, timeout_s))
            told.usage = Usage.now().since(start)
            link.drain(time.monotonic_ns() + int(LINGER_S * 1e9))
    except (TransportError, OSError) as error:
        mistake = isinstance(error, BadAddress | CannotListen)
        raise (UserError if mistake else click.ClickException)(sentence(error)) from error
    _show(part, size, told, as_json)
    return 1 if told.stopped or told.wrong else 0


def _figures(part: str, size: int, told: Told) -> Figures:
    """What one side alone can say: latency of one way would be between two hosts' clocks."""
    if part == "ask":
        return bounce_figures(size, told)
    found = flow_figures(size, [told]) if part == "consume" else {}
    return {name: value for name, value in found.items() if not name.startswith("latency")}


def _show(part: str, size: int, told: Told, as_json: bool) -> None:
    counts: dict[str, Any] = {
        "sent": told.sent, "sent_checksum": f"{told.sent_checksum:016x}", "received": told.received,
        "received_checksum": f"{told.received_checksum:016x}", "wrong": told.wrong, "stopped": told.stopped,
    }  # fmt: skip
    figures = _figures(part, size, told)
    if as_json:
        click.echo(orjson.dumps({"part": part, **counts, "figures": figures, "usage": told.usage}))
        return
    for name, value in (*counts.items(), *((name, short(value)) for name, value in figures.items())):
        if value and value != NOTHING:
            click.echo(f"{name:<24} {value}")
