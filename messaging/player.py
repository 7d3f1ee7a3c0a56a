"""A role's own side: it opens its links, says ready, waits for the word, plays its part, tells, and lets go.

What it says to the crew, and hears, is a tuple on a pipe:

    ("ready",)  ──▶                      ◀── ("start",)
    ("at work",)  ──▶
    ("progress", received)  ──▶          ◀── ("stop",)      of who shares a queue
    ("told", Told)  ──▶                  ◀── ("close",)
    ("failed", sentence, is_mistake)  ──▶
"""

from __future__ import annotations

import contextlib
import time
import traceback
from multiprocessing.connection import Connection
from typing import Any

from exchange.usage import Usage
from messaging import round_trips
from messaging.roles import End, Role
from runs.errors import sentence
from transports.base import BadAddress, CannotListen, Link, TransportError
from transports.frames import FrameBatch, Longs
from transports.registry import connect, listen

OPEN_NS = 20_000_000_000
TICK_NS = 50_000_000
"""How long nobody looks whether he was told something, or has waited too long."""
LONGEST_PAUSE_NS = 250_000_000
"""The same of one of dozens, who together would take the processors from a broker by looking."""
DRAIN_NS = 3_600_000_000_000
LINGER_S = 2.0


class Silence(Exception):
    """Nothing came, or nothing could go, for longer than patience lasts."""


class Player:
    """What a part is given: its links, and its patience."""

    def __init__(
        self, links: list[Link], crew: Connection[Any, Any], patience_s: float, until_told: bool = False
    ) -> None:
        """`until_told`: patient as long as the crew, which sees whether anybody gets on, does not say stop."""
        self.links, self._until_told = links, until_told
        self._look_ns = LONGEST_PAUSE_NS if until_told else TICK_NS
        self._crew, self._patience_ns = crew, int(patience_s * 1e9)
        self._until_ns = 0
        self.progressed()

    @property
    def link(self) -> Link:
        """Its only one, or its first."""
        return self.links[0]

    def progressed(self) -> None:
        """Something came or went: patience begins anew."""
        self._until_ns = time.monotonic_ns() + self._patience_ns

    def wait(self, link: Link, what: str, *, writable: bool = False) -> None:
        """Until something can be received, or sent (`writable`), for a moment. Silence, with `what`, after too many."""
        now_ns = time.monotonic_ns()
        if now_ns > self._until_ns and (self.is_told_to_stop or not self._until_told):
            raise Silence(f"{what} for {self._patience_ns / 1e9:g} s")
        link.wait(now_ns + self._look_ns, readable=not writable, writable=writable)

    def serve(self, link: Link) -> None:
        """What a link has to do besides: heartbeats, who came and went. PeerGone where nobody is there any more."""
        link.wait(0)

    def send_all(self, link: Link, batch: FrameBatch) -> None:
        """Hand over the batch."""
        first = 0
        while (first := self._sent(link, batch, first)) < batch.count:
            self.wait(link, "no message could be sent", writable=True)

    def _sent(self, link: Link, batch: FrameBatch, first: int) -> int:
        sent = link.send(batch, first)
        if sent > first:
            self.progressed()
        return sent

    def ask(self, link: Link, questions: FrameBatch, answers: FrameBatch, took_ns: Longs) -> None:
        """One after the other; how long each answer took, in ns. Silence where one did not come."""
        if round_trips.ask(link, questions, answers, took_ns, self._patience_ns) < questions.count:
            raise Silence(f"no answer came for {self._patience_ns / 1e9:g} s")

    def echo(self, link: Link, batch: FrameBatch, most: int) -> int:
        """Answer for a while with what comes; how often."""
        done = round_trips.echo(link, batch, most, time.monotonic_ns() + TICK_NS)
        if done:
            self.progressed()
        elif time.monotonic_ns() > self._until_ns:
            raise Silence(f"nothing came for {self._patience_ns / 1e9:g} s")
        return done

    def drain(self, link: Link) -> None:
        """Until what was sent has left, and a broker has taken it: that is as slow as it takes everybody's messages."""
        if not link.drain(time.monotonic_ns() + DRAIN_NS):
            raise Silence("what was sent did not leave")

    def say_progress(self, received: int) -> None:
        self._crew.send(("progress", received))

    @property
    def is_told_to_stop(self) -> bool:
        """A look at the pipe, so not for every message."""
        return self._crew.poll()


def play(role: Role, crew: Connection[Any, Any], patience_s: float, of_thread: bool) -> None:
    """A role's whole life; never raises."""
    with contextlib.suppress(EOFError, OSError):  # the crew is gone
        try:
            _play(role, crew, patience_s, of_thread)
        except (TransportError, OSError) as error:
            crew.send(("failed", sentence(error), isinstance(error, BadAddress | CannotListen)))
        except Exception:  # noqa: BLE001 - a mistake of ours; the others are to end all the same
            crew.send(("failed", f"broke: {traceback.format_exc()}", False))


def _play(role: Role, crew: Connection[Any, Any], patience_s: float, of_thread: bool) -> None:
    with contextlib.ExitStack() as held:
        links = [opened(end, held) for end in role.ends]
        crew.send(("ready",))
        if crew.recv() != ("start",):
            return
        crew.send(("at work",))
        player, start = Player(links, crew, patience_s, role.shares is not None), Usage.now(of_thread)
        told = role.part(player)
        told.usage = Usage.now(of_thread).since(start)
        told.sockets = [socket for link in links for socket in link.sockets()]
        told.facts = [link.facts() for link in links]
        crew.send(("told", told))
        _linger(links, crew)


def opened(end: End, held: contextlib.ExitStack) -> Link:
    """Listens or connects, until the context ends."""
    if end.listens:
        link = listen(end.url, end.token, end.pattern, end.keys)
    else:
        link = connect(end.url, end.token, time.monotonic_ns() + OPEN_NS, end.pattern, end.keys)
    held.callback(link.close, LINGER_S)
    return link


def _linger(links: list[Link], crew: Connection[Any, Any]) -> None:
    """What was sent leaves, and heartbeats go on, until everybody is at his end: less and less often.

    Of 120 roles the first have told minutes before the last, who needs the processor.
    """
    pause_ns = 1_000_000
    while not (crew.poll(pause_ns / 1e9) and crew.recv() == ("close",)):
        for link in links:
            with contextlib.suppress(TransportError):
                link.wait(time.monotonic_ns(), readable=False)
        pause_ns = min(2 * pause_ns, LONGEST_PAUSE_NS)
