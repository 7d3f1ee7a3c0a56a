"""Parts for what flows one way: who publishes as fast as it goes, who consumes and looks what came."""

from __future__ import annotations

import time
from dataclasses import dataclass

from messaging.payload import Receipt, Source
from messaging.player import Player, Silence
from messaging.roles import Told
from transports.base import Link, PeerGone
from transports.frames import FrameBatch

SAY_EVERY_NS = 100_000_000
"""How often who shares a queue says how much he has."""
WAKE_UPS_PER_S = 1_000
"""Of all who share queues together, where they have nothing to do."""
REPLY = FrameBatch.of(b"")


@dataclass(frozen=True)
class Publish:
    """Sends `count` messages, a batch at a time, then awaits so many empty replies.

    Where none is awaited it is done once a broker has taken everything.
    """

    size: int
    count: int
    replies: int = 1
    publisher: int = 0
    """Its number: each of several who publish to one receiver has his own."""

    def __call__(self, player: Player) -> Told:
        source, told = Source(self.size, self.publisher), Told(first_ns=time.monotonic_ns())
        try:
            while source.made < self.count:
                source.fill(self.count - source.made, time.monotonic_ns())
                player.send_all(player.link, source.batch)
            if not self.replies:
                player.drain(player.link)
            told.last_ns = time.monotonic_ns()
            told.received = await_replies(player, player.link, self.replies)
        except (Silence, PeerGone) as why:
            told.stopped = f"{why}, after {source.made:,} of {self.count:,} messages"
        told.sent, told.sent_checksum = source.made, source.checksum
        return told


def await_replies(player: Player, link: Link, replies: int) -> int:
    """Receive so many empty messages; how many came."""
    batch, came = FrameBatch(max(replies, 1), 1, 1), 0
    player.progressed()
    while came < replies:
        batch.clear()
        if link.receive(batch):
            came += sum(not frame for frame in batch)
        else:
            player.wait(link, "no reply came")
    return came


@dataclass(frozen=True)
class Consume:
    """Receives `count` messages and checks them, then sends an empty reply, where one is awaited.

    The first message is taken alone, and starts the clock.
    """

    size: int
    count: int
    replies: bool = True
    publishers: int = 1

    def __call__(self, player: Player) -> Told:
        receipt, told = Receipt(self.size, self.publishers), Told()
        try:
            told.first_ns = take(player, receipt, 1, receipt.empty_batch(1))
            told.last_ns = take(player, receipt, self.count, batch := receipt.empty_batch())
            take_what_is_there(player.link, receipt, batch)
            if self.replies:
                player.send_all(player.link, REPLY)
        except (Silence, PeerGone) as why:
            told.stopped = f"{why}; {receipt.received:,} of {self.count:,} messages came"
        return received(told, receipt, player.link)


def take(player: Player, receipt: Receipt, until: int, batch: FrameBatch) -> int:
    """Receive until there are so many, and what else is there already; when the last came."""
    link, now_ns = player.link, time.monotonic_ns()
    while receipt.received < until:
        batch.clear()
        if link.receive(batch):
            now_ns = time.monotonic_ns()
            receipt.add(batch, now_ns)
            player.progressed()
        else:
            player.wait(link, "nothing came")
    return now_ns


def take_what_is_there(link: Link, receipt: Receipt, batch: FrameBatch) -> None:
    """Where all has come nothing is: what is there is too much, and counted."""
    batch.clear()
    if link.receive(batch):
        receipt.add(batch, time.monotonic_ns())


def received(told: Told, receipt: Receipt, link: Link) -> Told:
    """With what the receipt says, and the junk that the link dropped."""
    told.received, told.received_checksum, told.latency = receipt.received, receipt.checksum, receipt.latency
    told.wrong = receipt.wrong | ({"too long": link.junk} if link.junk else {})
    return told


@dataclass(frozen=True)
class ConsumeShared:
    """Receives, with others, what a queue or an exchange gives them, until the crew says that all is there.

    Its clock runs from its first message to its last. Once it has all that is there it rests: `rest_s` is longer where
    there are many of its kind, who would else take the processors from a broker by waking up for each message.
    """

    size: int
    publishers: int
    rest_s: float

    def __call__(self, player: Player) -> Told:
        receipt, told, said = Receipt(self.size, self.publishers), Told(), 0
        batch = receipt.empty_batch()
        try:
            while not player.is_told_to_stop:
                self._take_for_a_while(player.link, receipt, batch, told)
                player.serve(player.link)
                if receipt.received > said:
                    player.say_progress(said := receipt.received)
        except PeerGone as why:
            told.stopped = f"{why}, after {receipt.received:,} messages"
        return received(told, receipt, player.link)

    def _take_for_a_while(self, link: Link, receipt: Receipt, batch: FrameBatch, told: Told) -> None:
        until_ns = time.monotonic_ns() + SAY_EVERY_NS
        while time.monotonic_ns() < until_ns:
            batch.clear()
            if link.receive(batch):
                told.last_ns = time.monotonic_ns()
                told.first_ns = told.first_ns or told.last_ns
                receipt.add(batch, told.last_ns)
            else:
                time.sleep(self.rest_s)


def rest_s(sharers: int) -> float:
    """Of each of so many who share queues in a cell: a millisecond of one alone, 60 ms of 60."""
    return sharers / WAKE_UPS_PER_S
