"""A role's session: its links while it works. A call that waits gives up after `patience_s` without progress.

A session uses only the calls that every link has, with two exceptions: round_trips.py uses the compiled calls that some
links lend, and `await_subscribers` uses the method of `CountsSubscribers`, if a link has it.
"""

from __future__ import annotations

import time
from multiprocessing.connection import Connection
from typing import Any, Protocol, runtime_checkable

from transports.base import Link, excuse_of
from transports.frames import FrameBatch, Longs

OPEN_NS = 20_000_000_000
"""The longest time that a link may take to open, and that subscribers may take to come."""
TICK_NS = 50_000_000
"""Interval at which a waiting role looks at the pipe from its launcher, and whether it has waited too long."""
LONGEST_TICK_NS = 250_000_000
"""The same interval for a role among dozens: frequent looks of all roles would take the processors from a broker."""


class Silence(Exception):
    """Nothing came, or nothing could be sent, for longer than a role waits."""


class Session:
    """The links of a role. Calls that wait raise Silence if nothing came or went for `patience_s` seconds."""

    def __init__(
        self,
        links: list[Link],
        launcher: Connection[Any, Any],
        patience_s: float,
        is_patient: bool = False,
        clock_ahead_ns: int = 0,
    ) -> None:
        """`is_patient`: after `patience_s` the role gives up only if the launcher has said stop.

        The launcher knows whether other roles still make progress.
        `clock_ahead_ns`: this process's clock minus that of the publishers, which differ if roles are on several hosts.
        """
        self.links = links
        self.clock_ahead_ns = clock_ahead_ns
        self._is_patient = is_patient
        self._tick_ns = LONGEST_TICK_NS if is_patient else TICK_NS
        self._launcher = launcher
        self._patience_ns = int(patience_s * 1e9)
        self._give_up_ns = 0
        self._was_late = False
        """Whether `patience_s` was over at the last call of `wait`."""
        self.progressed()

    @property
    def link(self) -> Link:
        """The only link, or the first."""
        return self.links[0]

    def progressed(self) -> None:
        """Note that something came or went: `patience_s` begins anew."""
        self._give_up_ns = time.monotonic_ns() + self._patience_ns
        self._was_late = False

    def wait(self, link: Link, problem: str, *, writable: bool = False) -> None:
        """Wait a moment until a frame can be received, or sent if `writable`. Silence, which names the `problem`.

        Silence is raised at the second call after `patience_s` is over. So the role looks at its link once more: the
        role itself may have been slow, and the message may lie there.
        """
        now_ns = time.monotonic_ns()
        is_late = now_ns > self._give_up_ns
        was_late = self._was_late
        self._was_late = is_late
        if is_late and was_late and (self.must_stop or not self._is_patient):
            raise Silence(f"{problem} for {self._patience_ns / 1e9:g} s{excuse_of(self.links)}")
        link.wait(now_ns + self._tick_ns, readable=not writable, writable=writable)

    def serve(self, link: Link) -> None:
        """Let the link do its other work: heartbeats, peers that come and go. PeerGone once all peers have left."""
        link.wait(0)

    def receive(self, link: Link, batch: FrameBatch, problem: str) -> int:
        """Wait until the link has frames, one or more, and put them into the batch.

        Returns when they had come (monotonic clock, ns). Silence names the `problem`.
        """
        while not link.receive(batch):
            self.wait(link, problem)
        now_ns = time.monotonic_ns()
        self._give_up_ns = now_ns + self._patience_ns
        self._was_late = False
        return now_ns

    def send_all(self, link: Link, batch: FrameBatch, first: int = 0) -> None:
        """Hand over the batch from frame `first` on, to its end."""
        next_frame = self.send(link, batch, first)
        while next_frame < batch.count:
            self.wait(link, "no message could be sent", writable=True)
            next_frame = self.send(link, batch, next_frame)

    def send(self, link: Link, batch: FrameBatch, first: int) -> int:
        """Hand over frames from `first` on, as many as the link takes; returns the first frame that it did not take."""
        next_frame = link.send(batch, first)
        if next_frame > first:
            self.progressed()
        return next_frame

    def ask(self, questions: FrameBatch, answers: FrameBatch, took_ns: Longs) -> None:
        """Send each question over the first link, once the previous question has its answer.

        The answers are added to `answers`, which is empty before, and `took_ns` gets the time of each round trip.
        ValueError if `answers` or `took_ns` has no room for all of them.
        """
        if answers.capacity_frames < questions.count:
            raise ValueError(f"no room for {questions.count} answers")
        if len(took_ns) < questions.count:
            raise ValueError(f"no room for the times of {questions.count} answers")
        from exchange_simulation.messaging import round_trips  # its kernels are loaded where a task runs

        while answers.count < questions.count:
            answered_before = answers.count
            until_ns = time.monotonic_ns() + TICK_NS
            answered, pending_sent_ns = round_trips.ask(self.link, questions, answers, took_ns, until_ns)
            if pending_sent_ns:  # compiled code has sent the next question, and its answer has not come yet
                self.progressed()
                self._await_answer(answers, took_ns, answered, pending_sent_ns)
                answered += 1
            elif answered == answered_before:  # compiled code did nothing: Python asks the next question
                self.progressed()
                sent_ns = self._send_question(questions, answered)
                self._await_answer(answers, took_ns, answered, sent_ns)
                answered += 1
            if answers.count > answered:  # later answers would be matched with the wrong questions
                raise Silence(f"more than one answer came to question {answered} of {questions.count}")

    def _await_answer(self, answers: FrameBatch, took_ns: Longs, number: int, sent_ns: int) -> None:
        """Receive the answer to the question `number`, which was sent at `sent_ns`."""
        took_ns[number] = self.receive(self.link, answers, "no answer came") - sent_ns

    def _send_question(self, questions: FrameBatch, number: int) -> int:
        """Send one question; returns when it was sent (monotonic clock, ns)."""
        count = questions.count
        questions.count = number + 1  # send_all sends to the end of the batch
        try:
            sent_ns = time.monotonic_ns()
            self.send_all(self.link, questions, number)
            return sent_ns
        finally:
            questions.count = count

    def echo(self, batch: FrameBatch, most: int) -> int:
        """Send back what comes over the first link, for a moment; returns how many frames went back.

        `batch` is scratch space. The last batch is sent back whole, so the number may exceed `most`.
        """
        from exchange_simulation.messaging import round_trips

        batch.clear()
        echoed = round_trips.echo(self.link, batch, most, time.monotonic_ns() + TICK_NS)
        if echoed:
            self.progressed()
        if echoed >= most:
            return echoed
        if batch.count == 0:  # compiled code left no frames that it could not send back
            self.link.receive(batch)
        if batch.count > 0:
            self.send_all(self.link, batch)
            echoed += batch.count
        elif not echoed:
            self.wait(self.link, "nothing came")
        return echoed

    def drain(self, link: Link) -> None:
        """Wait until what was sent has left and a broker, if there is one, has taken it. Silence if nothing goes on."""
        while not link.drain(time.monotonic_ns() + self._tick_ns):
            self.wait(link, "what was sent did not leave", writable=True)

    def report_progress(self, received: int) -> None:
        """Tell the launcher how many messages this role has."""
        self._launcher.send(("progress", received))

    @property
    def must_stop(self) -> bool:
        """True once the launcher says stop. A look costs a system call, so do not look for every message."""
        return self._launcher.poll()


@runtime_checkable
class CountsSubscribers(Protocol):
    """A publisher's link that counts its subscribers, as `zeromq` does, which has no broker that counts them."""

    def await_peers(self, count: int, until_ns: int) -> None:
        """Wait until `count` subscribers will miss nothing that is sent from now on. PeerGone after `until_ns`."""


def await_subscribers(link: Link, count: int, until_ns: int) -> None:
    """Wait until `count` subscribers will miss nothing that is sent from now on. PeerGone if they do not come in time.

    Over a broker this returns at once: the broker holds the subscriptions.
    """
    if isinstance(link, CountsSubscribers):
        link.await_peers(count, until_ns)
