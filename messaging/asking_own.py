"""Parts for requests of many: threads that each wait for their own reply, and who answers them all.

A thread of a client has a link of its own. It asks, one request at a time, until its time is over; what is answered
after the warm-up is the sample. It says that it is done by an empty request, whose answer it awaits, too.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from exchange.measurements import LogBuckets
from messaging.answer import wrong_with
from messaging.payload import Receipt, Source
from messaging.player import Player, Silence
from messaging.roles import Told
from transports.base import Link, TransportError
from transports.frames import FrameBatch

DONE = FrameBatch.of(b"")


@dataclass(frozen=True)
class AskOwn:
    """Each of its links is a thread's; `latency` is of the round trips that ended between first_ns and last_ns."""

    size: int
    warm_up_s: float
    sample_s: float

    def __call__(self, player: Player) -> Told:
        begin_ns = time.monotonic_ns() + int(self.warm_up_s * 1e9)
        end_ns = begin_ns + int(self.sample_s * 1e9)
        askers = [_Asker(self.size, link, player, begin_ns, end_ns) for link in player.links]
        threads = [threading.Thread(target=asker.ask) for asker in askers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return _together(askers, begin_ns, end_ns)


@dataclass
class _Asker:
    """One thread."""

    size: int
    link: Link
    player: Player
    begin_ns: int
    end_ns: int
    round_trips_ns: list[int] = field(default_factory=list)
    stopped: str | None = None

    def __post_init__(self) -> None:
        self.source, self.receipt = Source(self.size, frames=1), Receipt(self.size)
        self._answers = FrameBatch(1, 2 * self.size, self.size)

    def ask(self) -> None:
        try:
            while (asked_ns := time.monotonic_ns()) < self.end_ns:
                self.source.fill(1, asked_ns)
                came_ns = self._ask(self.source.batch)
                self.receipt.add(self._answers, came_ns)
                if self.begin_ns <= came_ns <= self.end_ns:
                    self.round_trips_ns.append(came_ns - asked_ns)
            self._ask(DONE)
        except (Silence, TransportError) as why:
            self.stopped = f"{why}, after {self.receipt.received:,} replies"

    def _ask(self, request: FrameBatch) -> int:
        """When its answer came."""
        self.player.send_all(self.link, request)
        self._answers.clear()
        while not self.link.receive(self._answers):
            self.player.wait(self.link, "no reply came")
        self.player.progressed()
        return time.monotonic_ns()


def _together(askers: list[_Asker], begin_ns: int, end_ns: int) -> Told:
    told, latency = Told(first_ns=begin_ns, last_ns=end_ns), LogBuckets()
    for asker in askers:
        told.sent += asker.source.made
        told.sent_checksum = (told.sent_checksum + asker.source.checksum) % 2**64
        told.received += asker.receipt.received
        told.received_checksum = (told.received_checksum + asker.receipt.checksum) % 2**64
        for what, many in asker.receipt.wrong.items():
            told.wrong[what] = told.wrong.get(what, 0) + many
        told.stopped = told.stopped or asker.stopped
        latency.merge(LogBuckets.of(np.array(asker.round_trips_ns, np.int64)))
    told.latency = latency
    return told


@dataclass(frozen=True)
class AnswerAll:
    """Sends every request back as it came, until so many threads have said that they are done."""

    size: int
    threads: int

    def __call__(self, player: Player) -> Told:
        told, done = Told(first_ns=time.monotonic_ns()), 0
        batch = FrameBatch(self.threads, (self.threads + 1) * self.size, self.size)
        try:
            while done < self.threads:
                batch.clear()
                if player.link.receive(batch):
                    player.send_all(player.link, batch)
                    finished = int((np.diff(batch.offsets[: batch.count + 1]) == 0).sum())
                    done += finished
                    told.received += batch.count - finished
                else:
                    player.wait(player.link, "no request came")
        except (Silence, TransportError) as why:
            told.stopped = f"{why}; {done} of {self.threads} threads are done"
        told.sent, told.last_ns = told.received, time.monotonic_ns()
        return told


def wrong_with_asking(told: Mapping[str, Told]) -> list[str]:
    """Every client has an answer to each of its requests, as it was sent; the server had all of them."""
    clients = {name: of_role for name, of_role in told.items() if name != "server"}
    reasons = [
        wrong for name, client in clients.items() for wrong in wrong_with({name: client}, {name: client}, client.sent)
    ]
    asked, server = sum(client.sent for client in clients.values()), told["server"]
    if server.stopped:
        reasons.append(f"server: {server.stopped}")
    if server.received != asked:
        reasons.append(f"the server received {server.received:,} requests instead of {asked:,}")
    return list(dict.fromkeys(reasons))
