"""Tasks that ask and answer; the check that all answers came back; the figures of the round trips.

Ask and Answer bounce one message at a time between two roles. ThreadedClient and RequestServer are for many threads:
each thread of a client has a link, and waits for its own replies; the server answers all threads. A thread asks until
its time is over; replies after the warm-up are the sample. At its end a thread sends an empty request, and awaits the
answer to it.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from exchange.measurements import LogBuckets
from exchange.unique import unique
from exchange_simulation.messaging.cell import Cell, Counts, Figures, Results
from exchange_simulation.messaging.roles import Links, Role, RoleResult, of_kind, stopped_in_words
from exchange_simulation.messaging.session import Session, Silence
from exchange_simulation.messaging.streams import latency_figures, wrong_with
from transports.base import Link, PeerGone, TransportError
from transports.frames import FrameBatch

MAX_QUESTIONS_PER_CALL = 64
"""The largest number of questions in one call of `Session.ask`, which sends them one by one."""
BATCH_BYTES = 1 << 22
"""Room for replies, or requests, that come together."""
END_OF_THREAD = FrameBatch.of(b"")
"""The empty request with which a thread ends."""


@dataclass(frozen=True)
class Ask:
    """Sends a message and awaits its answer, `count` times; `latency` has the times of the round trips.

    The answers of a batch are checked once all of them were timed.
    """

    size: int
    count: int

    def __call__(self, session: Session) -> RoleResult:
        from exchange_simulation.messaging.payload import MessageSource, Receipt, frames_in_a_batch

        frames = min(MAX_QUESTIONS_PER_CALL, frames_in_a_batch(self.size))
        source = MessageSource(self.size, frames=frames)
        receipt = Receipt(self.size)
        result = RoleResult()
        round_trips_ns = np.zeros(self.count, np.int64)
        answers = receipt.empty_batch(frames)
        result.first_ns = time.monotonic_ns()
        try:
            while source.count < self.count:
                first = source.count
                source.fill(self.count - first, time.monotonic_ns())
                answers.clear()
                try:
                    session.ask(source.batch, answers, round_trips_ns[first:])
                    result.last_ns = time.monotonic_ns()
                finally:
                    receipt.add(answers, time.monotonic_ns())
        except (Silence, PeerGone) as error:
            result.stopped = f"{error}; {receipt.received:,} of {self.count:,} answers came"
        result.sent = source.count
        if result.stopped:
            # The message without an answer was sent; the messages after it in its batch were not.
            result.sent = min(source.count, receipt.received + 1)
        result.sent_checksum = source.checksum
        result.received = receipt.received
        result.received_checksum = receipt.checksum
        result.wrong = receipt.wrong
        result.latency = LogBuckets.of(round_trips_ns[round_trips_ns > 0])
        return result


@dataclass(frozen=True)
class Answer:
    """Sends every message back unchanged, until `count` messages were sent back."""

    size: int
    count: int

    def __call__(self, session: Session) -> RoleResult:
        from exchange_simulation.messaging.payload import Receipt

        result = RoleResult()
        batch = Receipt(self.size).empty_batch(1)
        try:
            while result.sent < self.count:
                result.sent += session.echo(batch, self.count - result.sent)
        except (Silence, PeerGone) as error:
            result.stopped = f"{error}, after {result.sent:,} of {self.count:,} messages"
        result.received = result.sent
        result.last_ns = time.monotonic_ns()
        return result


@dataclass(frozen=True)
class PingPong:
    """A benchmark of round trips between two roles."""

    asker: str
    """Name of the role that asks."""
    answerer: str
    counts: Counts

    def roles(self, cell: Cell, links: Links) -> list[Role]:
        count = cell.count(self.counts)
        listener, connector = links.pair(cell.size)
        return [
            Role(self.answerer, Answer(cell.size, count), (listener,)),
            Role(self.asker, Ask(cell.size, count), (connector,), begins=True),
        ]

    def judge(self, cell: Cell, results: Results) -> list[str]:
        """Sentences unless every message came back to the asker unchanged."""
        asker = {self.asker: results[self.asker]}
        answerer = {self.answerer: results[self.answerer]}
        answered = results[self.answerer].sent
        expected = cell.count(self.counts)
        reasons = wrong_with(asker, asker, expected) + stopped_in_words(answerer)
        if answered != expected:
            reasons.append(f"the {self.answerer} answered {answered:,} messages instead of {expected:,}")
        return reasons

    def figures(self, cell: Cell, results: Results) -> Figures:
        return bounce_figures(cell.size, results[self.asker])


def bounce_figures(size: int, asker: RoleResult) -> Figures:
    """Figures of the round trips. `one_way_mean_us` is half of the mean round trip."""
    figures = latency_figures([asker], "round_trip")
    if not figures:
        return {}
    one_way_us = figures["round_trip_mean_us"] / 2
    return {**figures, "one_way_mean_us": one_way_us, "one_way_megabytes_per_s": size / one_way_us}


@dataclass(frozen=True)
class ThreadedClient:
    """Runs a thread for each link; `latency` has the round trips that ended between first_ns and last_ns."""

    size: int
    warm_up_s: float
    sample_s: float
    ahead: int = 1
    """Requests of a thread that may wait for a reply at once; 1: a thread awaits each reply before its next request."""

    def __call__(self, session: Session) -> RoleResult:
        begin_ns = time.monotonic_ns() + int(self.warm_up_s * 1e9)
        end_ns = begin_ns + int(self.sample_s * 1e9)
        client_threads = [
            _ClientThread(self.size, link, session, begin_ns, end_ns, self.ahead) for link in session.links
        ]
        threads = [threading.Thread(target=client_thread.ask) for client_thread in client_threads]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return _summed_result(client_threads, begin_ns, end_ns)


@dataclass
class _ClientThread:
    """What one thread of a client does, and counts."""

    size: int
    link: Link
    session: Session
    begin_ns: int
    end_ns: int
    ahead: int
    round_trips_ns: list[int] = field(default_factory=list)
    stopped: str | None = None

    def __post_init__(self) -> None:
        from exchange_simulation.messaging.payload import MessageSource, Receipt

        self.source = MessageSource(self.size, frames=1)
        self.receipt = Receipt(self.size)
        frames = max(1, min(self.ahead, BATCH_BYTES // self.size))
        self._answers = FrameBatch(frames, (frames + 1) * self.size, self.size)
        self._pending_asked_ns: deque[int] = deque()
        """Times at which the requests without a reply were sent, the oldest first."""

    def ask(self) -> None:
        """Ask until `end_ns`, then await all replies and end the thread."""
        try:
            asked_ns = time.monotonic_ns()
            while asked_ns < self.end_ns:
                self.source.fill(1, asked_ns)
                self.session.send_all(self.link, self.source.batch)
                self._pending_asked_ns.append(asked_ns)
                if len(self._pending_asked_ns) == self.ahead:
                    self._take_replies()
                asked_ns = time.monotonic_ns()
            while self._pending_asked_ns:
                self._take_replies()
            self.session.send_all(self.link, END_OF_THREAD)
            self._receive_replies()
        except (Silence, TransportError) as error:
            self.stopped = f"{error}, after {self.receipt.received:,} replies"

    def _take_replies(self) -> None:
        """Receive replies, check them, and note their round trips if they belong to the sample."""
        came_ns = self._receive_replies()
        self.receipt.add(self._answers, came_ns)
        for _ in range(min(self._answers.count, len(self._pending_asked_ns))):
            asked_ns = self._pending_asked_ns.popleft()
            if self.begin_ns <= came_ns <= self.end_ns:
                self.round_trips_ns.append(came_ns - asked_ns)

    def _receive_replies(self) -> int:
        """Wait for one reply or more; returns when they had come (monotonic clock, ns)."""
        self._answers.clear()
        return self.session.receive(self.link, self._answers, "no reply came")


def _summed_result(client_threads: list[_ClientThread], begin_ns: int, end_ns: int) -> RoleResult:
    """The result of a client: counts, checksums and round trips of all its threads, and the first error."""
    total = RoleResult(first_ns=begin_ns, last_ns=end_ns)
    round_trips_ns: list[int] = []
    for client_thread in client_threads:
        source = client_thread.source
        receipt = client_thread.receipt
        total.sent += source.count
        total.sent_checksum = (total.sent_checksum + source.checksum) % 2**64
        total.received += receipt.received
        total.received_checksum = (total.received_checksum + receipt.checksum) % 2**64
        for problem, count in receipt.wrong.items():
            total.wrong[problem] = total.wrong.get(problem, 0) + count
        total.stopped = total.stopped or client_thread.stopped
        round_trips_ns += client_thread.round_trips_ns
    total.latency = LogBuckets.of(np.array(round_trips_ns, np.int64))
    return total


@dataclass(frozen=True)
class RequestServer:
    """Sends every request back unchanged, until as many threads as `threads` have ended."""

    size: int
    threads: int
    ahead: int = 1

    def __call__(self, session: Session) -> RoleResult:
        result = RoleResult(first_ns=time.monotonic_ns())
        ended_threads = 0
        frames = max(self.threads, min(self.threads * self.ahead, BATCH_BYTES // self.size))
        batch = FrameBatch(frames, (frames + 1) * self.size, self.size)
        try:
            while ended_threads < self.threads:
                batch.clear()
                session.receive(session.link, batch, "no request came")
                session.send_all(session.link, batch)
                sizes = np.diff(batch.offsets[: batch.count + 1])
                empty_requests = int((sizes == 0).sum())  # an empty request ends a thread
                ended_threads += empty_requests
                result.received += batch.count - empty_requests
        except (Silence, TransportError) as error:
            result.stopped = f"{error}; {ended_threads} of {self.threads} threads are done"
        result.sent = result.received
        result.last_ns = time.monotonic_ns()
        return result


def wrong_with_replies(results: Results) -> list[str]:
    """Sentences unless every client has a right reply to each of its requests, and the server had all requests."""
    server = results["server"]
    requests = 0
    reasons: list[str] = []
    for name, client in of_kind(results, "client").items():
        requests += client.sent
        reasons += wrong_with({name: client}, {name: client}, client.sent)
    reasons += stopped_in_words({"server": server})
    if server.received != requests:
        reasons.append(f"the server received {server.received:,} requests instead of {requests:,}")
    return unique(reasons)


def reply_figures(size: int, clients: Sequence[RoleResult], sample_s: float) -> Figures:
    """Rates and response times of the sample. A kB has 1,000 bytes, as in the paper; a request counts in no rate."""
    replies = sum(client.latency.count for client in clients if client.latency)
    if not replies:
        return {}
    per_s = replies / sample_s
    rates = {"replies_per_s": per_s, "kilobytes_per_s": per_s * size / 1000}
    return {**rates, **latency_figures(clients, "response")}
