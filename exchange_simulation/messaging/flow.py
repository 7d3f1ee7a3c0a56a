"""Tasks for one-way flows: publish as fast as possible, or at a fixed rate; consume and check messages."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from exchange.measurements import LogBuckets
from exchange.settings import MAX_RATE_PER_S
from exchange_simulation.messaging.roles import RoleResult
from exchange_simulation.messaging.session import OPEN_NS, TICK_NS, Session, Silence, await_subscribers
from transports.base import Link, PeerGone
from transports.frames import FrameBatch, Longs

if TYPE_CHECKING:  # its kernels are loaded where a task runs, not where a benchmark is declared
    from exchange_simulation.messaging.payload import MessageSource, Receipt

REPORT_EVERY_NS = 100_000_000
"""Interval at which a consumer, or an agent of the supply chain, reports how much it has."""
FIRST_LOOK_NS = 1_000_000
"""A role that shares queues serves its links after this time, or a tenth of its rest, then after twice as long, up to
REPORT_EVERY_NS: where there is no broker, no peer gets through to it before."""
WAKE_UPS_PER_S = 1_000
"""How often the idle roles that share queues wake up, all together, at the most."""
UNDER_WAY_NS = 2_000_000_000
"""How long a reply may still be under way after its sender has left."""
FEW_MESSAGES, FEW_BYTES, NEAR_THE_END, REST_S = 64, 8_192, 1_000, 0.0005
"""A consumer of a flood rests for REST_S after it got fewer at once than this, but not for its last NEAR_THE_END."""
TAIL = 100
"""The last messages of a stream. Nagle's algorithm may hold them for 40 ms, so a growth of backlog leaves them out."""
REPLY = FrameBatch.of(b"")
NOTHING_DUE: Longs = np.zeros(0, np.int64)
CEILING_NS = 20_000_000
"""The time for which the highest rate is tried."""


@dataclass(frozen=True)
class Publish:
    """Sends `count` messages, a batch at a time, then awaits `replies` empty replies.

    If it awaits none it is done once a broker has taken everything.
    """

    size: int
    count: int
    replies: int = 1
    publisher: int = 0
    """The publisher's number; publishers to the same receiver have different numbers."""
    subscribers: int = 0
    """The publisher begins once this many consumers have subscribed."""
    rate_per_s: float | None = None
    """Messages fall due at this rate, whether or not earlier ones have gone; None: as fast as it goes."""

    def __call__(self, session: Session) -> RoleResult:
        from exchange_simulation.messaging.payload import MessageSource

        source = MessageSource(self.size, self.publisher)
        result = RoleResult()
        try:
            await_subscribers(session.link, self.subscribers, time.monotonic_ns() + OPEN_NS)
        except PeerGone as why:
            return RoleResult(stopped=str(why))
        result.first_ns = time.monotonic_ns()
        try:
            self._publish(session, source, result)
            if not self.replies:
                session.drain(session.link)
            result.last_ns = time.monotonic_ns()
            result.received = _await_replies(session, self.replies)
            result.details["replied_ns"] = time.monotonic_ns()
        except (Silence, PeerGone) as why:
            result.stopped = f"{why}, after {source.count:,} of {self.count:,} messages"
        result.sent = source.count
        result.sent_checksum = source.checksum
        result.mean_ns = source.stamps_ns // max(source.count, 1)
        return result

    def _publish(self, session: Session, source: MessageSource, result: RoleResult) -> None:
        if self.rate_per_s is not None:
            OpenLoop(source, self.count, self.rate_per_s).publish(session, result)
            return
        while source.count < self.count:
            source.fill(self.count - source.count, time.monotonic_ns())
            session.send_all(session.link, source.batch)


class OpenLoop:
    """Messages that fall due at a fixed rate, by the schedule of a run's gateway; being late moves no due time."""

    def __init__(self, source: MessageSource, count: int, rate_per_s: float) -> None:
        from gateway.due_times import Periodic
        from gateway.pacer import Schedule

        self._source = source
        self._count = count
        self._schedule = Schedule(Periodic(1e9 / rate_per_s))
        self._lags = Lags()
        self._schedule.start(time.monotonic_ns())

    def publish(self, session: Session, result: RoleResult) -> None:
        """Hand over each message once it is due. The result has the lags, and how long that took and was to take."""
        link = session.link
        started_ns = self._schedule.due_ns(1)
        while self._source.count < self._count:
            due = self.fill()
            if len(due):
                self._hand_over(session, due)
            else:
                link.wait(self._schedule.due_ns(self._source.count + 1), readable=False)
        given_ns = self._schedule.due_ns(self._count) - started_ns
        result.details |= {
            "lag": self._lags.all(),
            "given_s": given_ns / 1e9,
            "taken_s": (time.monotonic_ns() - started_ns) / 1e9,
        }

    def fill(self) -> Longs:
        """Put what is due into the source's batch, as far as it has room; returns the due times."""
        source = self._source
        now_ns = time.monotonic_ns()
        waiting = min(self._schedule.due_by(now_ns, source.count), self._count) - source.count
        frames = min(waiting, source.batch.capacity_frames)
        due = self._schedule.span(source.count + 1, frames) if frames else NOTHING_DUE
        source.fill(frames, now_ns, due)
        return due

    def _hand_over(self, session: Session, due: Longs) -> None:
        batch = self._source.batch
        first = 0
        session.progressed()
        while first < batch.count:
            handed_ns = time.monotonic_ns()
            end = session.send(session.link, batch, first)
            self._lags.add(handed_ns - due[first:end])
            if end < batch.count:
                session.wait(session.link, "no message could be sent", writable=True)
            first = end


class Lags:
    """How late messages were handed over, each after its due time."""

    def __init__(self) -> None:
        self._buckets = LogBuckets()
        self._waiting = np.zeros(1 << 16, np.int64)
        self._count = 0

    def add(self, lags_ns: Longs) -> None:
        if self._count + len(lags_ns) > len(self._waiting):
            self.all()
        self._waiting[self._count : self._count + len(lags_ns)] = lags_ns
        self._count += len(lags_ns)

    def all(self) -> LogBuckets:
        self._buckets.merge(LogBuckets.of(self._waiting[: self._count]))
        self._count = 0
        return self._buckets


def ceiling_per_s(size: int) -> float:
    """The highest rate at which messages can be made when they are due, with no link to hand them to."""
    from exchange_simulation.messaging.payload import MessageSource

    source = MessageSource(size)
    source.fill(1, 0, np.zeros(1, np.int64))  # the kernel is loaded
    loop = OpenLoop(source, 1 << 40, MAX_RATE_PER_S)
    began_ns = time.monotonic_ns()
    before = source.count
    while (took_ns := time.monotonic_ns() - began_ns) < CEILING_NS:
        loop.fill()
    return (source.count - before) * 1e9 / took_ns


def _await_replies(session: Session, replies: int) -> int:
    """Receive `replies` empty messages; returns how many came.

    A reply has a connection of its own, on which it may still be under way when its sender has left.
    """
    batch = FrameBatch(max(replies, 1), 1, 1)
    came = 0
    gone_ns = 0
    session.progressed()
    while came < replies:
        batch.clear()
        try:
            session.receive(session.link, batch, "no reply came")
        except PeerGone:
            now_ns = time.monotonic_ns()
            gone_ns = gone_ns or now_ns
            if now_ns > gone_ns + UNDER_WAY_NS:
                raise
            time.sleep(0.001)
        came += sum(not frame for frame in batch)
    return came


@dataclass(frozen=True)
class Consume:
    """Receives `count` messages, checks them, then sends one empty reply.

    It takes the first message alone, and starts the clock then. In a flood it rests for a moment after a few small
    messages: woken for each of them, it would take the processors from the broker that it waits for. Near the end of
    what is to come it does not rest, so the clock stops at the last message.
    """

    size: int
    count: int
    is_flood: bool = False

    def __call__(self, session: Session) -> RoleResult:
        from exchange_simulation.messaging.payload import Receipt

        receipt = Receipt(self.size)
        result = RoleResult()
        try:
            result.first_ns = _take(session, receipt, 1, receipt.empty_batch(1))
            batch = receipt.empty_batch()
            few = min(FEW_MESSAGES, FEW_BYTES // self.size) if self.is_flood else 0
            marks = []
            came_ns = result.first_ns
            for mark in (3 * self.count // 4, self.count - min(TAIL, self.count // 8)):
                came_ns = _take(session, receipt, mark, batch, came_ns, few)
                marks.append((receipt.received, came_ns))
            result.details["last_quarter"] = marks
            result.last_ns = _take(session, receipt, self.count, batch, came_ns, few)
            batch.clear()
            if session.link.receive(batch):  # more than was expected
                receipt.add(batch, time.monotonic_ns())
            session.send_all(session.link, REPLY)
        except (Silence, PeerGone) as why:
            result.stopped = f"{why}; {receipt.received:,} of {self.count:,} messages came"
        return _with_receipt(result, receipt, session.link)


def _take(session: Session, receipt: Receipt, until: int, batch: FrameBatch, now_ns: int = 0, few: int = 0) -> int:
    """Receive until the receipt has the given number of messages; returns when the last came, `now_ns` if none did.

    Fewer than `few` at once are followed by a rest.
    """
    report_ns = time.monotonic_ns() + REPORT_EVERY_NS
    while receipt.received < until:
        batch.clear()
        now_ns = session.receive(session.link, batch, "nothing came")
        receipt.add(batch, now_ns)
        if now_ns > report_ns:
            session.report_progress(receipt.received)
            report_ns = now_ns + REPORT_EVERY_NS
        if batch.count < few and until - receipt.received > NEAR_THE_END:
            time.sleep(REST_S)
    return now_ns


def _with_receipt(result: RoleResult, receipt: Receipt, link: Link) -> RoleResult:
    """Add what the receipt counted, and the junk that the link dropped."""
    result.received = receipt.received
    result.received_checksum = receipt.checksum
    result.latency = receipt.latency
    result.mean_ns = receipt.came_ns // max(receipt.received, 1)
    result.wrong = receipt.wrong | ({"too long": link.junk} if link.junk else {})
    return result


@dataclass(frozen=True)
class ConsumeShared:
    """Receives, with others, what a queue or an exchange gives them, until the launcher says that all has come.

    Its clock runs from its first message to its last. It rests for `rest_s` once it has all that is there: dozens that
    wake up for each message would take the processors from a broker. A client that does both publishes `count` messages
    over its first link, and consumes over its last; a link without room, or a queue without messages, keeps it from
    neither, and its clock runs from its start.
    """

    size: int
    publishers: int
    rest_s: float
    count: int = 0
    publisher: int = 0

    def __call__(self, session: Session) -> RoleResult:
        from exchange_simulation.messaging.payload import MessageSource, Receipt

        receipt = Receipt(self.size, self.publishers)
        result = RoleResult()
        out = Outbound(session.links[0], MessageSource(self.size, self.publisher), self.count) if self.count else None
        result.first_ns = time.monotonic_ns() if out else 0
        try:
            self._work(session, out, receipt, result)
        except PeerGone as why:
            result.stopped = f"{why}, after {receipt.received:,} messages"
        if out:
            result.sent = out.handed_over
            result.sent_checksum = out.source.checksum
            result.details["published_ns"] = out.taken_ns or time.monotonic_ns()
        return _with_receipt(result, receipt, session.links[-1])

    def _work(self, session: Session, out: Outbound | None, receipt: Receipt, result: RoleResult) -> None:
        batch = receipt.empty_batch()
        reported = 0
        for_ns = max(FIRST_LOOK_NS, int(self.rest_s * 1e9) // 10)
        while not session.must_stop:
            self._work_for_a_while(session.links[-1], out, receipt, batch, result, for_ns)
            for_ns = min(2 * for_ns, REPORT_EVERY_NS)
            for link in session.links:
                session.serve(link)
            if out:
                out.look_whether_all_is_taken()
            if receipt.received > reported:
                session.report_progress(reported := receipt.received)

    def _work_for_a_while(
        self, link: Link, out: Outbound | None, receipt: Receipt, batch: FrameBatch, result: RoleResult, for_ns: int
    ) -> None:
        until_ns = time.monotonic_ns() + for_ns
        while time.monotonic_ns() < until_ns:
            gone = out.hand_over() if out else 0
            if out and gone and out.is_handed_over:
                return  # when a broker has taken it all is to be seen at once
            batch.clear()
            if link.receive(batch):
                result.last_ns = time.monotonic_ns()
                result.first_ns = result.first_ns or result.last_ns
                receipt.add(batch, result.last_ns)
            elif not gone:
                time.sleep(min(self.rest_s, for_ns / 1e9))


class Outbound:
    """The messages that a client publishes while it consumes: batch after batch, as far as the link has room."""

    def __init__(self, link: Link, source: MessageSource, count: int) -> None:
        self._link = link
        self.source = source
        self._count = count
        self._first = 0
        self.taken_ns = 0
        """When a broker had taken everything; 0 before."""

    @property
    def handed_over(self) -> int:
        return self.source.count - (self.source.batch.count - self._first)

    @property
    def is_handed_over(self) -> bool:
        return self.handed_over == self._count

    def hand_over(self) -> int:
        """Returns how many messages the link took."""
        source = self.source
        if self._first == source.batch.count:
            if source.count == self._count:
                return 0
            source.fill(self._count - source.count, time.monotonic_ns())
            self._first = 0
        first = self._first
        self._first = self._link.send(source.batch, self._first)
        return self._first - first

    def look_whether_all_is_taken(self) -> None:
        """Look for a moment, once everything was handed over; the client goes on to consume in between."""
        if not self.taken_ns and self.is_handed_over:
            now_ns = time.monotonic_ns()
            self.taken_ns = time.monotonic_ns() if self._link.drain(now_ns + TICK_NS) else 0


def rest_s(sharers: int) -> float:
    """Seconds that each of so many sharers of queues rests: a millisecond if it is alone, 60 ms if they are 60."""
    return sharers / WAKE_UPS_PER_S
