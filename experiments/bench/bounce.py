"""Parts for a message that goes there and comes back: who asks, one at a time, and who answers with the same bytes."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from exchange.measurements import LogBuckets, bucket_of
from experiments.bench.payload import Receipt, Source
from experiments.bench.player import Player, Silence
from experiments.bench.roles import Told
from transports.base import PeerGone


@dataclass(frozen=True)
class Ask:
    """Sends a message, awaits its answer, `count` times; `latency` is that of the round trip.

    The answer is checked once its time has been taken.
    """

    size: int
    count: int

    def __call__(self, player: Player) -> Told:
        source, receipt, told = Source(self.size, frames=1), Receipt(self.size), Told()
        round_trips_ns, answers = np.zeros(self.count, np.int64), receipt.empty_batch(1)
        told.first_ns = time.monotonic_ns()
        try:
            for number in range(self.count):
                source.fill(1, time.monotonic_ns())
                answers.clear()
                round_trips_ns[number] = player.ask(player.link, source.batch, answers)
                told.last_ns = time.monotonic_ns()
                receipt.add(answers, told.last_ns)
        except (Silence, PeerGone) as why:
            told.stopped = f"{why}; {receipt.received:,} of {self.count:,} answers came"
        told.sent, told.sent_checksum = source.made, source.checksum
        told.received, told.received_checksum, told.wrong = receipt.received, receipt.checksum, receipt.wrong
        told.latency = histogram_of(round_trips_ns[: receipt.received])
        return told


def histogram_of(times_ns: np.ndarray[tuple[int], np.dtype[np.int64]]) -> LogBuckets:
    if not len(times_ns):
        return LogBuckets()
    counts = np.bincount(bucket_of(times_ns), minlength=len(LogBuckets().counts))
    return LogBuckets(counts, int(times_ns.sum()), int(times_ns.min()), int(times_ns.max()))


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
