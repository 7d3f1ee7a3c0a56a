"""Tasks that ask and answer; the check that all answers came back; the figures of the round trips.

Ask and Answer bounce one message at a time between two roles. AskOwn and AnswerAll are for many: threads that each wait
for their own reply, and a server that answers them all. Each thread of a client has a link of its own. It asks, one
request at a time, until its time is over; replies after the warm-up are the sample. A thread ends with an empty
request, and awaits the answer to that, too.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from exchange.measurements import LogBuckets
from exchange_simulation.messaging.cell import Cell, Counts, Figures, Results
from exchange_simulation.messaging.roles import Links, Role, RoleResult, of_kind, stopped_in_words
from exchange_simulation.messaging.session import Session, Silence
from exchange_simulation.messaging.streams import latency_figures, wrong_with
from transports.base import Link, PeerGone, TransportError
from transports.frames import FrameBatch

QUESTIONS = 64
"""Most small messages in a batch; each message of the batch is sent alone."""
BATCH_BYTES = 1 << 22
"""Room for replies, or requests, that come together."""
DONE = FrameBatch.of(b"")


@dataclass(frozen=True)
class Ask:
    """Sends a message and awaits its answer, `count` times; `latency` is that of the round trip.

    It checks the answers of a batch once it has timed them all.
    """

    size: int
    count: int

    def __call__(self, session: Session) -> RoleResult:
        from exchange_simulation.messaging.payload import MessageSource, Receipt, frames_in_a_batch

        frames = min(QUESTIONS, frames_in_a_batch(self.size))
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
        except (Silence, PeerGone) as why:
            result.stopped = f"{why}; {receipt.received:,} of {self.count:,} answers came"
        result.sent = min(source.count, receipt.received + 1) if result.stopped else source.count
        result.sent_checksum = source.checksum
        result.received = receipt.received
        result.received_checksum = receipt.checksum
        result.wrong = receipt.wrong
        result.latency = LogBuckets.of(round_trips_ns[round_trips_ns > 0])
        return result


@dataclass(frozen=True)
class Answer:
    """Sends every message back as it came, until `count` have gone."""

    size: int
    count: int

    def __call__(self, session: Session) -> RoleResult:
        from exchange_simulation.messaging.payload import Receipt

        result = RoleResult()
        batch = Receipt(self.size).empty_batch(1)
        try:
            while result.sent < self.count:
                result.sent += session.echo(batch, self.count - result.sent)
        except (Silence, PeerGone) as why:
            result.stopped = f"{why}, after {result.sent:,} of {self.count:,} messages"
        result.received = result.sent
        result.last_ns = time.monotonic_ns()
        return result


@dataclass(frozen=True)
class PingPong:
    """A benchmark of round trips between two roles, of these names."""

    asker: str
    answerer: str
    counts: Counts

    def roles(self, cell: Cell, links: Links) -> list[Role]:
        count, (listener, connector) = cell.count(self.counts), links.pair(cell.size)
        return [
            Role(self.answerer, Answer(cell.size, count), (listener,)),
            Role(self.asker, Ask(cell.size, count), (connector,), begins=True),
        ]

    def judge(self, cell: Cell, results: Results) -> list[str]:
        """Sentences unless every message came back to the asker as it went."""
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
    """Figures of the round trip; one way is half of its mean, so the time of all bounces over twice their number."""
    figures = latency_figures([asker], "round_trip")
    if not figures:
        return {}
    one_way_us = figures["round_trip_mean_us"] / 2
    return {**figures, "one_way_mean_us": one_way_us, "one_way_megabytes_per_s": size / one_way_us}


@dataclass(frozen=True)
class AskOwn:
    """Runs a thread for each link; `latency` is of the round trips that ended between first_ns and last_ns."""

    size: int
    warm_up_s: float
    sample_s: float
    ahead: int = 1
    """Requests that a thread may have without a reply; with 1 it awaits each reply before the next request."""

    def __call__(self, session: Session) -> RoleResult:
        begin_ns = time.monotonic_ns() + int(self.warm_up_s * 1e9)
        end_ns = begin_ns + int(self.sample_s * 1e9)
        askers = [_Asker(self.size, link, session, begin_ns, end_ns, self.ahead) for link in session.links]
        threads = [threading.Thread(target=asker.ask) for asker in askers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return _together(askers, begin_ns, end_ns)


@dataclass
class _Asker:
    """One thread of a client."""

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
        self._asked_ns: deque[int] = deque()

    def ask(self) -> None:
        try:
            while (asked_ns := time.monotonic_ns()) < self.end_ns:
                self.source.fill(1, asked_ns)
                self.session.send_all(self.link, self.source.batch)
                self._asked_ns.append(asked_ns)
                if len(self._asked_ns) == self.ahead:
                    self._take_replies()
            while self._asked_ns:
                self._take_replies()
            self.session.send_all(self.link, DONE)
            self._await_replies()
        except (Silence, TransportError) as why:
            self.stopped = f"{why}, after {self.receipt.received:,} replies"

    def _take_replies(self) -> None:
        came_ns = self._await_replies()
        self.receipt.add(self._answers, came_ns)
        for _ in range(min(self._answers.count, len(self._asked_ns))):
            asked_ns = self._asked_ns.popleft()
            if self.begin_ns <= came_ns <= self.end_ns:
                self.round_trips_ns.append(came_ns - asked_ns)

    def _await_replies(self) -> int:
        """Receive what has come, one reply or more; returns when that was."""
        self._answers.clear()
        return self.session.receive(self.link, self._answers, "no reply came")


def _together(askers: list[_Asker], begin_ns: int, end_ns: int) -> RoleResult:
    total = RoleResult(first_ns=begin_ns, last_ns=end_ns)
    for asker in askers:
        total.sent += asker.source.count
        total.sent_checksum = (total.sent_checksum + asker.source.checksum) % 2**64
        total.received += asker.receipt.received
        total.received_checksum = (total.received_checksum + asker.receipt.checksum) % 2**64
        for what, many in asker.receipt.wrong.items():
            total.wrong[what] = total.wrong.get(what, 0) + many
        total.stopped = total.stopped or asker.stopped
    total.latency = LogBuckets.of(np.concatenate([np.array(each.round_trips_ns, np.int64) for each in askers]))
    return total


@dataclass(frozen=True)
class AnswerAll:
    """Sends every request back unchanged, until the given number of threads has said that they are done."""

    size: int
    threads: int
    ahead: int = 1

    def __call__(self, session: Session) -> RoleResult:
        result = RoleResult(first_ns=time.monotonic_ns())
        done = 0
        frames = max(self.threads, min(self.threads * self.ahead, BATCH_BYTES // self.size))
        batch = FrameBatch(frames, (frames + 1) * self.size, self.size)
        try:
            while done < self.threads:
                batch.clear()
                session.receive(session.link, batch, "no request came")
                session.send_all(session.link, batch)
                finished = int((np.diff(batch.offsets[: batch.count + 1]) == 0).sum())
                done += finished
                result.received += batch.count - finished
        except (Silence, TransportError) as why:
            result.stopped = f"{why}; {done} of {self.threads} threads are done"
        result.sent = result.received
        result.last_ns = time.monotonic_ns()
        return result


def wrong_with_asking(results: Results) -> list[str]:
    """Sentences unless every client has an answer to each request, as it was sent, and the server had all of them."""
    clients = of_kind(results, "client")
    each = [({name: client}, client.sent) for name, client in clients.items()]
    reasons = [wrong for client, sent in each for wrong in wrong_with(client, client, sent)]
    asked = sum(client.sent for client in clients.values())
    server = results["server"]
    reasons += stopped_in_words({"server": server})
    if server.received != asked:
        reasons.append(f"the server received {server.received:,} requests instead of {asked:,}")
    return list(dict.fromkeys(reasons))


def reply_figures(size: int, clients: Sequence[RoleResult], sample_s: float) -> Figures:
    """Rates and response times of the sample; kB are of 1,000 bytes, as in the paper, and each reply counts once."""
    replies = sum(client.latency.count for client in clients if client.latency)
    if not replies:
        return {}
    per_s = replies / sample_s
    rates = {"replies_per_s": per_s, "kilobytes_per_s": per_s * size / 1000}
    return {**rates, **latency_figures(clients, "response")}
