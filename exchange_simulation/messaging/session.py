"""Sessions, in which a role uses its links with patience. round_trips.py has round trips in compiled code.

Everything works by the calls that every link has. A link may offer better calls of its own besides: it has the methods
of `CountsSubscribers`, and imports nothing for that.
"""

from __future__ import annotations

import time
from multiprocessing.connection import Connection
from typing import Any, Protocol, runtime_checkable

from transports.base import Link
from transports.frames import FrameBatch, Longs

OPEN_NS = 20_000_000_000
"""Longest that a link may take to open, and subscribers to come."""
TICK_NS = 50_000_000
"""Interval at which a waiting role looks at the pipe from its launcher, and at its patience."""
LONGEST_PAUSE_NS = 250_000_000
"""The same interval for a role among dozens: frequent looks of all roles would take the processors from a broker."""


class Silence(Exception):
    """Nothing came, or nothing could be sent, for longer than patience lasts."""


class Session:
    """A role's links between start and end. Calls that wait raise Silence once patience is over."""

    def __init__(
        self, links: list[Link], launcher: Connection[Any, Any], patience_s: float, until_stopped: bool = False
    ) -> None:
        """`until_stopped`: patience lasts until the launcher, which sees whether any role gets on, says stop."""
        self.links = links
        self._until_stopped = until_stopped
        self._look_ns = LONGEST_PAUSE_NS if until_stopped else TICK_NS
        self._launcher = launcher
        self._patience_ns = int(patience_s * 1e9)
        self._until_ns = 0
        self.progressed()

    @property
    def link(self) -> Link:
        """The only link, or the first."""
        return self.links[0]

    def progressed(self) -> None:
        """Begin patience anew: something came or went."""
        self._until_ns = time.monotonic_ns() + self._patience_ns

    def wait(self, link: Link, what: str, *, writable: bool = False) -> None:
        """Wait a moment until a frame can be received, or sent if `writable`. Silence says `what`."""
        now_ns = time.monotonic_ns()
        if now_ns > self._until_ns and (self.must_stop or not self._until_stopped):
            raise Silence(f"{what} for {self._patience_ns / 1e9:g} s")
        link.wait(now_ns + self._look_ns, readable=not writable, writable=writable)

    def serve(self, link: Link) -> None:
        """Let the link do its other work: heartbeats, peers that come and go. PeerGone once all peers have left."""
        link.wait(0)

    def receive(self, link: Link, batch: FrameBatch, what: str) -> int:
        """Wait until the link has frames for the batch, however many; returns when they were there."""
        while not link.receive(batch):
            self.wait(link, what)
        now_ns = time.monotonic_ns()
        self._until_ns = now_ns + self._patience_ns
        return now_ns

    def send_all(self, link: Link, batch: FrameBatch, first: int = 0) -> None:
        """Hand over the batch from frame `first` on."""
        while (first := self.send(link, batch, first)) < batch.count:
            self.wait(link, "no message could be sent", writable=True)

    def send(self, link: Link, batch: FrameBatch, first: int) -> int:
        """Hand over what the link takes of the frames from `first` on; returns the first frame that it did not take."""
        sent = link.send(batch, first)
        if sent > first:
            self.progressed()
        return sent

    def ask(self, questions: FrameBatch, answers: FrameBatch, took_ns: Longs) -> None:
        """Send the questions over the first link, each after the answer to the one before.

        `answers` is empty and takes all; `took_ns` gets the time of each round trip.
        """
        if min(answers.capacity_frames, len(took_ns)) < questions.count:
            raise ValueError(f"no room for {questions.count} answers")
        from exchange_simulation.messaging import round_trips  # its kernels are loaded where a task runs

        while (before := answers.count) < questions.count:
            until_ns = time.monotonic_ns() + TICK_NS
            number, sent_ns = round_trips.ask(self.link, questions, answers, took_ns, until_ns)
            if number == before or sent_ns:
                self.progressed()
                sent_ns = sent_ns or self._send_one(questions, number)
                took_ns[number] = self.receive(self.link, answers, "no answer came") - sent_ns
                number += 1
            if answers.count > number:  # the numbers of what follows would be wrong
                raise Silence(f"more than one answer came to question {number} of {questions.count}")

    def _send_one(self, batch: FrameBatch, number: int) -> int:
        """Returns when it was sent."""
        count = batch.count
        batch.count = number + 1
        try:
            sent_ns = time.monotonic_ns()
            self.send_all(self.link, batch, number)
            return sent_ns
        finally:
            batch.count = count

    def echo(self, batch: FrameBatch, most: int) -> int:
        """Send back what comes over the first link, for a moment; returns how many frames went back.

        `batch` is scratch space. It may go back whole, and so make it more than `most`.
        """
        from exchange_simulation.messaging import round_trips

        batch.clear()
        done = round_trips.echo(self.link, batch, most, time.monotonic_ns() + TICK_NS)
        if done:
            self.progressed()
        if done < most and (batch.count or self.link.receive(batch)):
            self.send_all(self.link, batch)
            done += batch.count
        elif not done:
            self.wait(self.link, "nothing came")
        return done

    def drain(self, link: Link) -> None:
        """Wait until what was sent has left and a broker has taken it, as patiently as for anything else."""
        while not link.drain(time.monotonic_ns() + self._look_ns):
            self.wait(link, "what was sent did not leave", writable=True)

    def report_progress(self, received: int) -> None:
        """Tell the launcher how many messages this role has."""
        self._launcher.send(("progress", received))

    @property
    def must_stop(self) -> bool:
        """True once the launcher says stop. It costs a system call, so do not ask for every message."""
        return self._launcher.poll()


@runtime_checkable
class CountsSubscribers(Protocol):
    """A publisher's link that counts its subscribers, since no broker does: `zeromq` has such a link."""

    def await_peers(self, count: int, until_ns: int) -> None:
        """Wait until `count` subscribers will miss nothing that is sent from now on. PeerGone after `until_ns`."""


def await_subscribers(link: Link, count: int, until_ns: int) -> None:
    """Wait until `count` subscribers will miss nothing that is sent from now on. PeerGone if they do not come in time.

    A broker holds the subscriptions of whoever has connected, so over one there is nothing to wait for.
    """
    if isinstance(link, CountsSubscribers):
        link.await_peers(count, until_ns)
