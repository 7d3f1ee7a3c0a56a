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
from typing import TYPE_CHECKING, Any

import numpy as np

from exchange.measurements import LogBuckets
from exchange.unique import unique
from exchange_simulation.launching.errors import UserError
from exchange_simulation.messaging.cell import Cell, Counts, Figures, Results
from exchange_simulation.messaging.flow import OpenLoop
from exchange_simulation.messaging.message_load import MessageLoad
from exchange_simulation.messaging.roles import Links, ReceivedPart, Role, RoleResult, of_kind, stopped_in_words
from exchange_simulation.messaging.session import Session, Silence
from exchange_simulation.messaging.streams import figures_of_times, latency_figures, wrong_with
from transports.base import Link, PeerGone, TransportError
from transports.frames import FrameBatch, Longs

if TYPE_CHECKING:  # the module loads kernels, so tasks import it
    from exchange_simulation.messaging.payload import MessageSource, Receipt

MAX_QUESTIONS_PER_CALL = 64
"""The largest number of questions in one call of `Session.ask`, which sends them one by one."""
BATCH_BYTES = 1 << 22
"""Room for replies, or requests, that come together."""
MOST_REQUESTS = 1 << 39
"""More requests than a thread can send: the end of its sample ends them."""
MOST_ROUND_TRIPS = 50_000_000
"""The largest number of round trips of an asker, which keeps up to three times of each, 24 bytes, until its end."""
END_OF_THREAD = FrameBatch.of(b"")
"""The empty request with which a thread ends."""


@dataclass(frozen=True)
class Ask:
    """Sends a message and awaits its answer, `count` times; `latency` has the times of the round trips.

    The answers of a batch are checked once all of them were timed.
    """

    size: int
    count: int
    load: MessageLoad | None = None
    """When the messages fall due; a message that is due still waits for the answer to the one before it."""

    def __call__(self, session: Session) -> RoleResult:
        from exchange_simulation.messaging.payload import MessageSource, Receipt, frames_in_a_batch

        at_once = 1 if self.load else MAX_QUESTIONS_PER_CALL
        frames = min(at_once, frames_in_a_batch(self.size))
        source = MessageSource(self.size, frames=frames)
        receipt = Receipt(self.size)
        result = RoleResult()
        round_trips_ns = np.zeros(self.count, np.int64)
        answers = receipt.empty_batch(frames)
        result.first_ns = time.monotonic_ns()
        try:
            if self.load:
                self._ask_when_due(self.load, session, source, receipt, round_trips_ns, result)
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

    def _ask_when_due(
        self,
        load: MessageLoad,
        session: Session,
        source: MessageSource,
        receipt: Receipt,
        round_trips_ns: Longs,
        result: RoleResult,
    ) -> None:
        """Ask each message once it is due and the one before it has its answer.

        The result gets the times from due to the answers, in all and by step of the load.
        """
        open_loop = OpenLoop(source, self.count, load)
        answers = receipt.empty_batch(1)
        came_ns = np.zeros(self.count, np.int64)
        from_due_ns = np.zeros(self.count, np.int64)
        while source.count < self.count:
            number = source.count
            if not open_loop.fill():
                session.link.wait(open_loop.next_due_ns, readable=False)
                continue
            asked_ns = time.monotonic_ns()
            open_loop.note(0, 1, asked_ns)
            answers.clear()
            session.ask(source.batch, answers, round_trips_ns[number:])
            came_ns[number] = asked_ns + round_trips_ns[number]
            from_due_ns[number] = came_ns[number] - open_loop.first_due_ns
            receipt.add(answers, int(came_ns[number]))
        result.last_ns = int(came_ns[-1])
        steps = []
        for step in load.steps:
            numbers = slice(step.messages.first, step.messages.end)
            steps.append(answered_part(came_ns[numbers], from_due_ns[numbers]))
        result.details |= {**open_loop.facts(), "from_due": LogBuckets.of(from_due_ns), "steps": steps}


def answered_part(came_ns: Longs, from_due_ns: Longs) -> ReceivedPart:
    """The answers to a part of the messages, by the times at which they came, and the times from due until then."""
    if not len(came_ns):
        return ReceivedPart()
    return ReceivedPart(len(came_ns), int(came_ns.min()), int(came_ns.max()), LogBuckets.of(from_due_ns))


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
        """UserError for more round trips than the asker can keep the times of."""
        count = cell.count(self.counts)
        if count > MOST_ROUND_TRIPS:
            raise UserError(
                f"{cell}: {count:,} round trips are too many, since the time of each is kept in memory until the end: "
                f"give a --count, or --seconds at a --rate, of {MOST_ROUND_TRIPS:,} or fewer"
            )
        listener, connector = links.pair(cell.size)
        return [
            Role(self.answerer, Answer(cell.size, count), (listener,)),
            Role(self.asker, Ask(cell.size, count, cell.load), (connector,), begins=True),
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
        asker = results[self.asker]
        return {**bounce_figures(cell.size, asker), **figures_from_due([asker])}


def figures_from_due(askers: Sequence[RoleResult]) -> Figures:
    """Times from when messages were due to their answers; nothing of askers without a load."""
    times = [asker.details["from_due"] for asker in askers if "from_due" in asker.details]
    return figures_of_times(LogBuckets.together(times), "due") if times else {}


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
    load: MessageLoad | None = None
    """When the requests of each thread fall due, from the sample's begin on. Its first rate holds for the warm-up."""

    def __call__(self, session: Session) -> RoleResult:
        start_ns = time.monotonic_ns()
        begin_ns = start_ns + int(self.warm_up_s * 1e9)
        end_ns = begin_ns + int(self.sample_s * 1e9)
        load = self.load.after(self.warm_up_s) if self.load else None
        client_threads = [
            _ClientThread(self.size, link, session, start_ns, begin_ns, end_ns, self.ahead, load)
            for link in session.links
        ]
        threads = [threading.Thread(target=client_thread.ask) for client_thread in client_threads]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        result = _summed_result(client_threads, begin_ns, end_ns)
        if self.load:
            result.details |= _facts_of_load(client_threads, self.load, begin_ns)
        return result


@dataclass
class _ClientThread:
    """What one thread of a client does, and counts."""

    size: int
    link: Link
    session: Session
    start_ns: int
    """When the load of all threads begins, also of a thread that the system starts late."""
    begin_ns: int
    end_ns: int
    ahead: int
    load: MessageLoad | None = None
    """With the warm-up."""
    round_trips_ns: list[int] = field(default_factory=list)
    """Round trips that ended within the sample."""
    due_ns: list[int] = field(default_factory=list)
    """With a load: due times of the requests that were due within the sample."""
    came_ns: list[int] = field(default_factory=list)
    """With a load: when the replies to these requests came."""
    lags_ns: list[int] = field(default_factory=list)
    """With a load: how late the requests that were due within the sample were sent."""
    stopped: str | None = None
    open_loop: OpenLoop | None = None

    def __post_init__(self) -> None:
        from exchange_simulation.messaging.payload import MessageSource, Receipt

        self.source = MessageSource(self.size, frames=1)
        self.receipt = Receipt(self.size)
        frames = max(1, min(self.ahead, BATCH_BYTES // self.size))
        self._answers = FrameBatch(frames, (frames + 1) * self.size, self.size)
        self._pending_asked_ns: deque[int] = deque()
        """Times at which the requests without a reply were sent, the oldest first."""
        self._pending_due_ns: deque[int] = deque()
        """With a load: the due times of these requests."""

    def ask(self) -> None:
        """Ask until `end_ns`, then await all replies and end the thread."""
        try:
            if self.load:
                self._ask_when_due(self.load)
            else:
                self._ask_without_pause()
            while self._pending_asked_ns:
                self._take_replies()
            self.session.send_all(self.link, END_OF_THREAD)
            self._receive_replies()
        except (Silence, TransportError) as error:
            self.stopped = f"{error}, after {self.receipt.received:,} replies"

    def _ask_without_pause(self) -> None:
        """Ask as often as replies allow, until `end_ns`."""
        asked_ns = time.monotonic_ns()
        while asked_ns < self.end_ns:
            self.source.fill(1, asked_ns)
            self.session.send_all(self.link, self.source.batch)
            self._pending_asked_ns.append(asked_ns)
            if len(self._pending_asked_ns) == self.ahead:
                self._take_replies()
            asked_ns = time.monotonic_ns()

    def _ask_when_due(self, load: MessageLoad) -> None:
        """Ask each request that is due before `end_ns`, once fewer than `ahead` requests wait for a reply."""
        self.open_loop = OpenLoop(self.source, MOST_REQUESTS, load, self.start_ns)
        while self.open_loop.next_due_ns < self.end_ns:
            if len(self._pending_asked_ns) == self.ahead:
                self._take_replies()
            elif self.open_loop.fill():
                asked_ns = time.monotonic_ns()
                due_ns = self.open_loop.first_due_ns
                self.open_loop.note(0, 1, asked_ns)
                self._pending_asked_ns.append(asked_ns)
                self._pending_due_ns.append(due_ns)
                if due_ns >= self.begin_ns:
                    self.lags_ns.append(asked_ns - due_ns)
                self.session.send_all(self.link, self.source.batch)
            elif self._pending_asked_ns:
                self._take_replies_until(self.open_loop.next_due_ns)
            else:
                self.link.wait(self.open_loop.next_due_ns, readable=False)
                self.session.progressed()

    def _take_replies_until(self, until_ns: int) -> None:
        """Wait for replies until `until_ns`, and take those that have come."""
        self.link.wait(until_ns)
        self._answers.clear()
        if self.link.receive(self._answers):
            self.session.progressed()
            self._note_replies(time.monotonic_ns())

    def _take_replies(self) -> None:
        """Receive replies, check them, and note their round trips if they belong to the sample."""
        self._note_replies(self._receive_replies())

    def _note_replies(self, came_ns: int) -> None:
        """Check the replies that came, and note their times if they belong to the sample."""
        self.receipt.add(self._answers, came_ns)
        for _ in range(min(self._answers.count, len(self._pending_asked_ns))):
            asked_ns = self._pending_asked_ns.popleft()
            if self.begin_ns <= came_ns <= self.end_ns:
                self.round_trips_ns.append(came_ns - asked_ns)
            if self._pending_due_ns:
                due_ns = self._pending_due_ns.popleft()
                if due_ns >= self.begin_ns:
                    self.due_ns.append(due_ns)
                    self.came_ns.append(came_ns)

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


def _facts_of_load(client_threads: list[_ClientThread], load: MessageLoad, begin_ns: int) -> dict[str, Any]:
    """The times from due of a client's requests that were due in the sample, in all and by step, and their lags."""
    facts = [client_thread.open_loop.facts() for client_thread in client_threads if client_thread.open_loop]
    due_ns = np.array([due for client_thread in client_threads for due in client_thread.due_ns], np.int64)
    came_ns = np.array([came for client_thread in client_threads for came in client_thread.came_ns], np.int64)
    lags_ns = np.array([lag for client_thread in client_threads for lag in client_thread.lags_ns], np.int64)
    number_of_step = np.searchsorted(load.step_starts_s, (due_ns - begin_ns) / 1e9, side="right")
    steps = []
    lag_by_step = []
    for number in range(len(load.steps)):
        of_step = number_of_step == number
        steps.append(answered_part(came_ns[of_step], (came_ns - due_ns)[of_step]))
        lag_by_step.append(LogBuckets.together(fact["lag_by_step"][number + 1] for fact in facts))  # 0 is the warm-up
    return {
        "lag": LogBuckets.of(lags_ns),
        "lag_by_step": lag_by_step,
        "load": load.shape.typed,
        "started_ns": begin_ns,
        "given_s": max(fact["given_s"] for fact in facts),
        "taken_s": max(fact["taken_s"] for fact in facts),
        "from_due": LogBuckets.of(came_ns - due_ns),
        "steps": steps,
        "threads": len(client_threads),
    }


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
