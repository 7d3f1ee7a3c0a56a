"""Parts for a message that goes there and comes back: who asks, one at a time, and who answers with the same bytes."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from exchange.measurements import LogBuckets
from messaging.payload import Receipt, Source, frames_in_a_batch
from messaging.player import Player, Silence
from messaging.roles import Told
from transports.base import PeerGone
from transports.frames import FrameBatch, Longs

QUESTIONS = 64
"""In a batch, of small ones, that are asked one at a time."""


@dataclass(frozen=True)
class Ask:
    """Sends a message, awaits its answer, `count` times; `latency` is that of the round trip.

    The answers are checked once the time of a batch's was taken.
    """

    size: int
    count: int

    def __call__(self, player: Player) -> Told:
        frames = min(QUESTIONS, frames_in_a_batch(self.size))
        source, receipt, told = Source(self.size, frames=frames), Receipt(self.size), Told()
        round_trips_ns, answers = np.zeros(self.count, np.int64), receipt.empty_batch(frames)
        told.first_ns = time.monotonic_ns()
        try:
            while source.made < self.count:
                first = source.made
                source.fill(self.count - first, time.monotonic_ns())
                self._ask(player, source, answers, receipt, round_trips_ns[first:], told)
        except (Silence, PeerGone) as why:
            told.stopped = f"{why}; {receipt.received:,} of {self.count:,} answers came"
        told.sent = min(source.made, receipt.received + 1) if told.stopped else source.made
        told.sent_checksum = source.checksum
        told.received, told.received_checksum, told.wrong = receipt.received, receipt.checksum, receipt.wrong
        told.latency = LogBuckets.of(round_trips_ns[round_trips_ns > 0])
        return told

    @staticmethod
    def _ask(player: Player, source: Source, answers: FrameBatch, receipt: Receipt, took_ns: Longs, told: Told) -> None:
        answers.clear()
        try:
            player.ask(player.link, source.batch, answers, took_ns)
            told.last_ns = time.monotonic_ns()
        finally:
            receipt.add(answers, time.monotonic_ns())


@dataclass(frozen=True)
class Answer:
    """Sends every message back as it came, until `count` have gone."""

    size: int
    count: int

    def __call__(self, player: Player) -> Told:
        told, link, batch = Told(), player.link, Receipt(self.size).empty_batch(1)
        try:
            while told.sent < self.count:
                told.sent += player.echo(link, batch, self.count - told.sent)
        except (Silence, PeerGone) as why:
            told.stopped = f"{why}, after {told.sent:,} of {self.count:,} messages"
        told.received, told.last_ns = told.sent, time.monotonic_ns()
        return told
