"""Tasks for one-way flows: publish as fast as possible; consume and check messages."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from messaging.roles import RoleResult
from messaging.session import OPEN_NS, Session, Silence, await_subscribers
from transports.base import Link, PeerGone
from transports.frames import FrameBatch

if TYPE_CHECKING:  # its kernels are loaded where a task runs, not where a benchmark is declared
    from messaging.payload import Receipt

REPORT_EVERY_NS = 100_000_000
"""Interval at which a role that shares a queue reports how much it has."""
WAKE_UPS_PER_S = 1_000
"""The most of all idle roles together that share queues."""
REPLY = FrameBatch.of(b"")


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

    def __call__(self, session: Session) -> RoleResult:
        from messaging.payload import Source

        source, result = Source(self.size, self.publisher), RoleResult()
        try:
            await_subscribers(session.link, self.subscribers, time.monotonic_ns() + OPEN_NS)
        except PeerGone as why:
            return RoleResult(stopped=str(why))
        result.first_ns = time.monotonic_ns()
        try:
            while source.count < self.count:
                source.fill(self.count - source.count, time.monotonic_ns())
                session.send_all(session.link, source.batch)
            if not self.replies:
                session.drain(session.link)
            result.last_ns = time.monotonic_ns()
            result.received = _await_replies(session, self.replies)
            result.details["replied_ns"] = time.monotonic_ns()
        except (Silence, PeerGone) as why:
            result.stopped = f"{why}, after {source.count:,} of {self.count:,} messages"
        result.sent, result.sent_checksum = source.count, source.checksum
        return result


def _await_replies(session: Session, replies: int) -> int:
    """Receive `replies` empty messages; returns how many came."""
    batch, came = FrameBatch(max(replies, 1), 1, 1), 0
    session.progressed()
    while came < replies:
        batch.clear()
        if session.link.receive(batch):
            came += sum(not frame for frame in batch)
        else:
            session.wait(session.link, "no reply came")
    return came


@dataclass(frozen=True)
class Consume:
    """Receives `count` messages, checks them, then sends one empty reply.

    It takes the first message alone, and starts the clock then.
    """

    size: int
    count: int

    def __call__(self, session: Session) -> RoleResult:
        from messaging.payload import Receipt

        receipt, result = Receipt(self.size), RoleResult()
        try:
            result.first_ns = _take(session, receipt, 1, receipt.empty_batch(1))
            result.last_ns = _take(session, receipt, self.count, batch := receipt.empty_batch())
            _take_surplus(session.link, receipt, batch)
            session.send_all(session.link, REPLY)
        except (Silence, PeerGone) as why:
            result.stopped = f"{why}; {receipt.received:,} of {self.count:,} messages came"
        return _with_receipt(result, receipt, session.link)


def _take(session: Session, receipt: Receipt, until: int, batch: FrameBatch) -> int:
    """Receive until the receipt has the given number of messages; returns when the last came."""
    link, now_ns = session.link, time.monotonic_ns()
    while receipt.received < until:
        batch.clear()
        if link.receive(batch):
            now_ns = time.monotonic_ns()
            receipt.add(batch, now_ns)
            session.progressed()
        else:
            session.wait(link, "nothing came")
    return now_ns


def _take_surplus(link: Link, receipt: Receipt, batch: FrameBatch) -> None:
    """Count surplus messages, which come after the last expected one."""
    batch.clear()
    if link.receive(batch):
        receipt.add(batch, time.monotonic_ns())


def _with_receipt(result: RoleResult, receipt: Receipt, link: Link) -> RoleResult:
    """Add what the receipt counted, and the junk that the link dropped."""
    result.received, result.received_checksum, result.latency = receipt.received, receipt.checksum, receipt.latency
    result.wrong = receipt.wrong | ({"too long": link.junk} if link.junk else {})
    return result


@dataclass(frozen=True)
class ConsumeShared:
    """Receives, with others, what a queue or an exchange gives them, until the launcher says that all has come.

    Its clock runs from its first message to its last. It rests for `rest_s` once it has all that is there: dozens that
    wake up for each message would take the processors from a broker.
    """

    size: int
    publishers: int
    rest_s: float

    def __call__(self, session: Session) -> RoleResult:
        from messaging.payload import Receipt

        receipt, result, reported = Receipt(self.size, self.publishers), RoleResult(), 0
        batch = receipt.empty_batch()
        try:
            while not session.must_stop:
                self._take_for_a_while(session.link, receipt, batch, result)
                session.serve(session.link)
                if receipt.received > reported:
                    session.report_progress(reported := receipt.received)
        except PeerGone as why:
            result.stopped = f"{why}, after {receipt.received:,} messages"
        return _with_receipt(result, receipt, session.link)

    def _take_for_a_while(self, link: Link, receipt: Receipt, batch: FrameBatch, result: RoleResult) -> None:
        until_ns = time.monotonic_ns() + REPORT_EVERY_NS
        while time.monotonic_ns() < until_ns:
            batch.clear()
            if link.receive(batch):
                result.last_ns = time.monotonic_ns()
                result.first_ns = result.first_ns or result.last_ns
                receipt.add(batch, result.last_ns)
            else:
                time.sleep(self.rest_s)


def rest_s(sharers: int) -> float:
    """Seconds that each of so many sharers of queues rests: a millisecond if it is alone, 60 ms if they are 60."""
    return sharers / WAKE_UPS_PER_S
