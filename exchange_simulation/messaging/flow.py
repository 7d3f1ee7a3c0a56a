"""Tasks for one-way flows: publish as fast as possible, or at a fixed rate; consume and check messages."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from exchange.measurements import LogBuckets
from exchange.settings import MAX_RATE_PER_S
from exchange_simulation.messaging.message_load import IGNORED_LAST_MESSAGES, MessageLoad
from exchange_simulation.messaging.roles import RoleResult
from exchange_simulation.messaging.session import OPEN_NS, TICK_NS, Session, Silence, await_subscribers
from transports.base import Link, PeerGone
from transports.frames import FrameBatch, Longs

# payload.py compiles kernels. It is imported when a task runs, not when a benchmark is declared.
if TYPE_CHECKING:
    from exchange_simulation.messaging.payload import MessageSource, Receipt

REPORT_EVERY_NS = 100_000_000
"""Interval at which a consumer, or an agent of the supply chain, reports the number of its messages."""
FIRST_SERVE_NS = 1_000_000
"""A role that shares queues first serves its links after this time, or after a tenth of `rest_s` if that is longer.

The interval then doubles up to REPORT_EVERY_NS. Without a broker no peer can connect before the links are served.
"""
WAKE_UPS_PER_S = 1_000
"""The most wake-ups a second, summed over all idle roles that share queues."""
UNDER_WAY_NS = 2_000_000_000
"""The longest time that a reply may be under way after its sender has left."""
FEW_MESSAGES = 64
"""A consumer of a flood rests after it received fewer messages than this at once, and fewer bytes than FEW_BYTES."""
FEW_BYTES = 8_192
REST_S = 0.0005
"""The rest of a consumer of a flood."""
NEAR_THE_END = 1_000
"""A consumer does not rest during its last messages, as many as this."""
REPLY = FrameBatch.of(b"")
"""The empty message with which a consumer replies."""
RETRY_NS = 1_000_000
"""The time after which a client tries again to hand over messages that are due, while it waits for others to come."""
NOTHING_DUE: Longs = np.zeros(0, np.int64)
CEILING_NS = 20_000_000
"""The time for which `ceiling_per_s` makes messages."""


@dataclass(frozen=True)
class Publish:
    """Sends `count` messages, a batch at a time, then awaits `replies` empty replies.

    Without replies the task is done once a broker has taken all messages.
    """

    size: int
    count: int
    replies: int = 1
    publisher: int = 0
    """The publisher's number; publishers to the same receiver have different numbers."""
    subscribers: int = 0
    """The publisher begins once this many consumers have subscribed."""
    load: MessageLoad | None = None
    """When messages fall due, whether or not earlier messages were sent; None: as fast as possible."""

    def __call__(self, session: Session) -> RoleResult:
        from exchange_simulation.messaging.payload import MessageSource

        source = MessageSource(self.size, self.publisher)
        result = RoleResult()
        try:
            await_subscribers(session.link, self.subscribers, time.monotonic_ns() + OPEN_NS)
        except PeerGone as error:
            return RoleResult(stopped=str(error))
        result.first_ns = time.monotonic_ns()
        try:
            self._publish(session, source, result)
            if not self.replies:
                session.drain(session.link)
            result.last_ns = time.monotonic_ns()
            result.received = _await_replies(session, self.replies)
            result.details["replied_ns"] = time.monotonic_ns()
        except (Silence, PeerGone) as error:
            result.stopped = f"{error}, after {source.count:,} of {self.count:,} messages"
        result.sent = source.count
        result.sent_checksum = source.checksum
        result.mean_ns = source.stamps_ns // max(source.count, 1)
        return result

    def _publish(self, session: Session, source: MessageSource, result: RoleResult) -> None:
        """Send all messages, when they are due or as fast as possible."""
        if self.load is not None:
            OpenLoop(source, self.count, self.load).publish(session, result)
            return
        while source.count < self.count:
            source.fill(self.count - source.count, time.monotonic_ns())
            session.send_all(session.link, source.batch)


class OpenLoop:
    """Messages that fall due at the rates of a load, by the schedule of a run's gateway; a late one moves no due time.

    The source has batches of messages that are due. Whoever hands them over notes when the link took them.
    """

    def __init__(self, source: MessageSource, count: int, load: MessageLoad, start_ns: int | None = None) -> None:
        """`start_ns`: when the load begins (monotonic clock, ns); None: now."""
        from gateway.pacer import Schedule

        self._source = source
        self._count = count
        self._load = load
        self._schedule = Schedule(load.due_times())
        self._due: Longs = NOTHING_DUE
        self._lags = Lags(load.step_bounds)
        self._schedule.start(time.monotonic_ns() if start_ns is None else start_ns)
        self._started_ns = self._schedule.due_ns(1)
        self._last_handed_ns = self._started_ns

    def publish(self, session: Session, result: RoleResult) -> None:
        """Hand over each message once it is due; puts the facts of the load into the result."""
        link = session.link
        while self._source.count < self._count:
            if self.fill():
                self._hand_over(session)
            else:
                link.wait(self.next_due_ns, readable=False)
        result.details |= self.facts()

    @property
    def next_due_ns(self) -> int:
        """The due time of the next message that was not made yet."""
        return self._schedule.due_ns(self._source.count + 1)

    @property
    def first_due_ns(self) -> int:
        """The due time of the first message in the source's batch, which is not empty."""
        return int(self._due[0])

    def fill(self) -> int:
        """Put the messages that are due into the source's batch, as far as it has room; returns their number."""
        source = self._source
        now_ns = time.monotonic_ns()
        waiting = min(self._schedule.due_by(now_ns, source.count), self._count) - source.count
        frames = min(waiting, source.batch.capacity_frames)
        self._due = self._schedule.span(source.count + 1, frames) if frames else NOTHING_DUE
        source.fill(frames, now_ns, self._due)
        return frames

    def note(self, first: int, end: int, handed_ns: int) -> None:
        """Note when the link took the frames from `first` to `end` of the source's batch."""
        if first == end:
            return
        first_of_batch = self._source.count - self._source.batch.count
        self._lags.add(handed_ns - self._due[first:end], first_of_batch + first)
        self._last_handed_ns = handed_ns

    def facts(self) -> dict[str, Any]:
        """Return the lags, in all and by step, when the load began, and two durations.

        From the first to the last message, `given_s` is the time between due times, and `taken_s` that between sends.
        """
        last_message = max(self._source.count, 1)
        given_ns = self._schedule.due_ns(last_message) - self._started_ns
        return {
            "lag": self._lags.all(),
            "lag_by_step": self._lags.by_step(),
            "load": self._load.shape.typed,
            "started_ns": self._started_ns,
            "given_s": given_ns / 1e9,
            "taken_s": (self._last_handed_ns - self._started_ns) / 1e9,
        }

    def _hand_over(self, session: Session) -> None:
        """Hand over the source's batch, whose messages are due."""
        batch = self._source.batch
        first = 0
        session.progressed()
        while first < batch.count:
            handed_ns = time.monotonic_ns()
            end = session.send(session.link, batch, first)
            self.note(first, end, handed_ns)
            if end < batch.count:
                session.wait(session.link, "no message could be sent", writable=True)
            first = end


class Lags:
    """The times by which messages were handed over after their due times, counted in buckets, by step of a load."""

    def __init__(self, step_bounds: Sequence[int] = ()) -> None:
        """`step_bounds`: the number, from 0, of the first message of each step but the first."""
        self._step_bounds = step_bounds
        self._buckets = [LogBuckets() for _ in range(len(step_bounds) + 1)]
        self._step = 0
        self._uncounted_ns = np.zeros(1 << 16, np.int64)
        self._count = 0

    def add(self, lags_ns: Longs, first_message: int = 0) -> None:
        """Add the lags of messages in the order of their numbers, from `first_message` on."""
        while self._step < len(self._step_bounds) and first_message + len(lags_ns) > self._step_bounds[self._step]:
            of_this_step = max(self._step_bounds[self._step] - first_message, 0)
            self._add_to_step(lags_ns[:of_this_step])
            self._count_in_buckets()
            self._step += 1
            lags_ns = lags_ns[of_this_step:]
            first_message += of_this_step
        self._add_to_step(lags_ns)

    def _add_to_step(self, lags_ns: Longs) -> None:
        if self._count + len(lags_ns) > len(self._uncounted_ns):
            self._count_in_buckets()
        self._uncounted_ns[self._count : self._count + len(lags_ns)] = lags_ns
        self._count += len(lags_ns)

    def all(self) -> LogBuckets:
        """The buckets of all lags so far."""
        self._count_in_buckets()
        return LogBuckets.together(self._buckets)

    def by_step(self) -> list[LogBuckets]:
        """The buckets of the lags of each step so far; empty without steps."""
        self._count_in_buckets()
        return self._buckets if self._step_bounds else []

    def _count_in_buckets(self) -> None:
        self._buckets[self._step].merge(LogBuckets.of(self._uncounted_ns[: self._count]))
        self._count = 0


def ceiling_per_s(size: int) -> float:
    """The highest rate at which messages can be made when they are due, measured without a link."""
    from exchange_simulation.messaging.payload import MessageSource

    source = MessageSource(size)
    source.fill(1, 0, np.zeros(1, np.int64))  # loads the kernel
    more_than_can_be_made = 1 << 40
    loop = OpenLoop(source, more_than_can_be_made, MessageLoad.steady(MAX_RATE_PER_S, more_than_can_be_made))
    began_ns = time.monotonic_ns()
    count_before = source.count
    took_ns = 0
    while took_ns < CEILING_NS:
        loop.fill()
        took_ns = time.monotonic_ns() - began_ns
    return (source.count - count_before) * 1e9 / took_ns


def _await_replies(session: Session, replies: int) -> int:
    """Receive `replies` empty messages; returns the number of those that came. Silence if none comes in time.

    A reply has a separate connection, and may still be under way when its sender has left. PeerGone if a reply is
    missing UNDER_WAY_NS after that.
    """
    batch = FrameBatch(capacity_frames=max(replies, 1), capacity_bytes=1, largest_frame=1)
    received = 0
    gone_ns = 0
    session.progressed()
    while received < replies:
        batch.clear()
        try:
            session.receive(session.link, batch, "no reply came")
        except PeerGone:
            now_ns = time.monotonic_ns()
            if gone_ns == 0:
                gone_ns = now_ns
            if now_ns > gone_ns + UNDER_WAY_NS:
                raise
            time.sleep(0.001)
        for frame in batch:
            if len(frame) == 0:
                received += 1
    return received


@dataclass(frozen=True)
class Consume:
    """Receives `count` messages, checks them, then sends one empty reply.

    The clock starts with the first message, which is received alone. In a flood the consumer rests for a moment after a
    few small messages: if it woke up for each message, it would take the processors from the broker. Near the end it
    does not rest, so that the clock stops at the last message.
    """

    size: int
    count: int
    is_flood: bool = False
    load: MessageLoad | None = None
    """When the messages fall due; each step of the load is counted by itself."""

    def __call__(self, session: Session) -> RoleResult:
        from exchange_simulation.messaging.payload import Receipt

        receipt = Receipt(
            self.size, clock_ahead_ns=session.clock_ahead_ns, bounds=self.load.step_bounds if self.load else ()
        )
        result = RoleResult()
        try:
            _take(session, receipt, until=1, batch=receipt.empty_batch(1))
            result.first_ns = receipt.latest_ns
            batch = receipt.empty_batch()
            rests_below = min(FEW_MESSAGES, FEW_BYTES // self.size) if self.is_flood else 0
            begin_of_last_quarter = 3 * self.count // 4
            end_of_last_quarter = self.count - min(IGNORED_LAST_MESSAGES, self.count // 8)
            last_quarter: list[tuple[int, int]] = []  # messages received, and when, at its begin and at its end
            for until in (begin_of_last_quarter, end_of_last_quarter):
                _take(session, receipt, until, batch, rests_below)
                last_quarter.append((receipt.received, receipt.latest_ns))
            result.details["last_quarter"] = last_quarter
            _take(session, receipt, self.count, batch, rests_below)
            result.last_ns = receipt.latest_ns
            batch.clear()
            if session.link.receive(batch):  # more messages than expected
                receipt.add(batch, time.monotonic_ns())
            session.send_all(session.link, REPLY)
        except (Silence, PeerGone) as error:
            result.stopped = f"{error}; {receipt.received:,} of {self.count:,} messages came"
        if self.load:
            result.details["steps"] = [receipt.part_of(step.messages) for step in self.load.steps]
        return _with_receipt(result, receipt, session.link)


def _take(session: Session, receipt: Receipt, until: int, batch: FrameBatch, rests_below: int = 0) -> None:
    """Receive until the receipt has `until` messages.

    After fewer than `rests_below` messages at once, the consumer rests.
    """
    report_ns = time.monotonic_ns() + REPORT_EVERY_NS
    while receipt.received < until:
        batch.clear()
        now_ns = session.receive(session.link, batch, "nothing came")
        receipt.add(batch, now_ns)
        if now_ns > report_ns:
            session.report_progress(receipt.received)
            report_ns = now_ns + REPORT_EVERY_NS
        if batch.count < rests_below and until - receipt.received > NEAR_THE_END:
            time.sleep(REST_S)


def _with_receipt(result: RoleResult, receipt: Receipt, link: Link) -> RoleResult:
    """Add the counts of the receipt to the result, and the junk that the link dropped."""
    result.received = receipt.received
    result.received_checksum = receipt.checksum
    result.latency = receipt.latency
    result.mean_ns = receipt.came_ns // max(receipt.received, 1)
    result.wrong = receipt.wrong
    if link.junk:
        result.wrong["too long"] = link.junk
    return result


@dataclass(frozen=True)
class ConsumeShared:
    """Receives messages of a shared queue or an exchange, until the launcher says that all messages have come.

    The clock runs from the first message to the last. The consumer pauses for `rest_s` whenever no message is there:
    dozens of roles that wake up for each message would take the processors from a broker.

    If `count` is above 0, the task also publishes `count` messages over its first link, and consumes over its last
    link. Neither waits for the other. The clock of such a client runs from its start. With a load, messages are
    published when they are due, and the consumer does not pause.
    """

    size: int
    publishers: int
    rest_s: float
    count: int = 0
    publisher: int = 0
    load: MessageLoad | None = None

    def __call__(self, session: Session) -> RoleResult:
        from exchange_simulation.messaging.payload import MessageSource, Receipt

        bounds = self.load.bounds if self.load else ()
        receipt = Receipt(self.size, self.publishers, session.clock_ahead_ns, bounds)
        result = RoleResult()
        out: Outbound | None = None
        if self.count:
            out = Outbound(session.links[0], MessageSource(self.size, self.publisher), self.count, self.load)
            result.first_ns = time.monotonic_ns()
        try:
            self._work(session, out, receipt, result)
        except PeerGone as error:
            result.stopped = f"{error}, after {receipt.received:,} messages"
        if out:
            result.sent = out.handed_over
            result.sent_checksum = out.source.checksum
            # Without `taken_ns` the broker has not taken all messages; the publishing then ends with the task.
            result.details["published_ns"] = out.taken_ns or time.monotonic_ns()
            result.details |= out.facts_of_load()
        if self.load:
            result.details["steps"] = [receipt.part_of(step.messages) for step in self.load.steps]
            result.details["quarter_windows"] = [receipt.part_of(window) for window in self.load.quarter_windows]
        return _with_receipt(result, receipt, session.links[-1])

    def _work(self, session: Session, out: Outbound | None, receipt: Receipt, result: RoleResult) -> None:
        """Work until the launcher says stop; serve the links and report progress now and then."""
        batch = receipt.empty_batch()
        reported = 0
        work_ns = max(FIRST_SERVE_NS, int(self.rest_s * 1e9) // 10)
        while not session.must_stop:
            self._work_for_a_while(session.links[-1], out, receipt, batch, result, work_ns)
            work_ns = min(2 * work_ns, REPORT_EVERY_NS)
            for link in session.links:
                session.serve(link)
            if out:
                out.check_whether_all_is_taken()
            if receipt.received > reported:
                reported = receipt.received
                session.report_progress(reported)

    def _work_for_a_while(
        self, link: Link, out: Outbound | None, receipt: Receipt, batch: FrameBatch, result: RoleResult, work_ns: int
    ) -> None:
        """Publish and consume for `work_ns`, or until all messages are handed over."""
        until_ns = time.monotonic_ns() + work_ns
        while time.monotonic_ns() < until_ns:
            handed_over = out.hand_over() if out else 0
            if out and handed_over and out.is_handed_over:
                return  # to the caller, which waits for the broker to take the last messages
            batch.clear()
            if link.receive(batch):
                result.last_ns = time.monotonic_ns()
                if result.first_ns == 0:
                    result.first_ns = result.last_ns
                receipt.add(batch, result.last_ns)
            elif not handed_over and self.load is None:
                time.sleep(min(self.rest_s, work_ns / 1e9))
            elif not handed_over:
                link.wait(min(until_ns, out.next_try_ns) if out else until_ns)


class Outbound:
    """The messages that a client publishes while it consumes, batch after batch, as far as the link has room."""

    def __init__(self, link: Link, source: MessageSource, count: int, load: MessageLoad | None = None) -> None:
        """With a load, the batches have messages that are due."""
        self._open_loop = OpenLoop(source, count, load) if load else None
        self._link = link
        self.source = source
        self._count = count
        self._first = 0
        """The first frame of the source's batch that the link has not taken."""
        self.taken_ns = 0
        """Time at which a broker had taken all messages; 0 before."""

    @property
    def handed_over(self) -> int:
        return self.source.count - (self.source.batch.count - self._first)

    @property
    def is_handed_over(self) -> bool:
        return self.handed_over == self._count

    def hand_over(self) -> int:
        """Hand over messages; returns the number of messages that the link took."""
        source = self.source
        if self._first == source.batch.count:
            if source.count == self._count:
                return 0
            if self._open_loop:
                self._open_loop.fill()
            else:
                source.fill(self._count - source.count, time.monotonic_ns())
            self._first = 0
        if self._first == source.batch.count:  # no message is due
            return 0
        first = self._first
        handed_ns = time.monotonic_ns()
        self._first = self._link.send(source.batch, self._first)
        if self._open_loop:
            self._open_loop.note(first, self._first, handed_ns)
            self._link.wait(0)  # what the link still holds leaves now: the client then waits at its other link
        return self._first - first

    @property
    def next_try_ns(self) -> int:
        """When to hand over again, after nothing could be handed over: once the next message is due, or in a moment.

        For a client with a load.
        """
        if self._open_loop is None or self._first < self.source.batch.count:
            return time.monotonic_ns() + RETRY_NS
        if self.source.count == self._count:
            return time.monotonic_ns() + TICK_NS
        return self._open_loop.next_due_ns

    def facts_of_load(self) -> dict[str, Any]:
        """The lags and times of the load; empty without one."""
        return self._open_loop.facts() if self._open_loop else {}

    def check_whether_all_is_taken(self) -> None:
        """Once all messages are handed over, wait a moment for the broker to take them; sets `taken_ns`."""
        if self.taken_ns or not self.is_handed_over:
            return
        if self._link.drain(time.monotonic_ns() + TICK_NS):
            self.taken_ns = time.monotonic_ns()


def rest_s(sharers: int) -> float:
    """Seconds for which each of the roles that share queues rests: 1 ms for a single role, 60 ms for 60 roles."""
    return sharers / WAKE_UPS_PER_S
