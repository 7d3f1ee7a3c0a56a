"""Follows a journal: matches its orders as they come and keeps the latest answers.

So a standby can take over from the engine, and an engine can go on from a snapshot.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from exchange.checksum import StreamChecksum
from exchange.messages import Resume
from matching_engine.engine import MatchingEngine
from matching_engine.recovering.journal_records import REPLAY_BYTES, JournalReader, snapshot_path
from matching_engine.recovering.snapshots import go_on_from_snapshot
from matching_engine.turns import Sums
from transports.frames import Bytes, FrameBatch, Longs

RECENT_BYTES = 1 << 22
"""Bytes of the latest answers that are kept. For a gateway that lacks more, the journal is matched again."""


class RecentAnswers(NamedTuple):
    """Frames of answers."""

    answers_before: int
    """The number of answers before these."""
    checksum_before: StreamChecksum
    """The checksum of the answers before these."""
    buffer: Bytes
    offsets: Longs

    def copy_into(self, answers: FrameBatch) -> None:
        """Fill the batch with these frames. The batch grows if it has too little room."""
        if len(self.buffer) > len(answers.buffer):
            answers.buffer = np.zeros(len(self.buffer), np.uint8)
        if len(self.offsets) > len(answers.offsets):
            answers.offsets = np.zeros(len(self.offsets), np.int64)
        answers.buffer[: len(self.buffer)] = self.buffer
        answers.offsets[: len(self.offsets)] = self.offsets
        answers.count = len(self.offsets) - 1


class Follower:
    """Matches the orders in an engine's journal, from its snapshot on, and keeps the latest answers."""

    def __init__(self, path: Path, engine: MatchingEngine) -> None:
        self.engine = engine
        self.sums = Sums()
        self.reader = JournalReader(engine.packing)
        go_on_from_snapshot(path, self.reader, engine, self.sums)
        self.orders_in_snapshot = self.reader.orders
        """Orders that need not be matched, since the snapshot has their effect."""
        self.path = path
        self._batch = FrameBatch(1 << 18, 1 << 21)
        self._recent: deque[RecentAnswers] = deque()
        self._recent_bytes = 0

    @classmethod
    def from_snapshot(cls, path: Path, engine: MatchingEngine) -> Follower | None:
        """Return a follower that begins with the journal's snapshot; None if no snapshot fits an engine like this."""
        if not snapshot_path(path).exists():
            return None
        follower = cls(path, engine.renewed())
        return follower if follower.orders_in_snapshot > 0 else None

    def follow(self, beat: Callable[[], None] = lambda: None) -> None:
        """Match the orders that the journal got since the last call. `beat` is called before each batch of orders."""
        while self.reader.has_begun(self.path):
            start = self.reader.at
            with self.path.open("rb") as file:
                file.seek(start)
                data = np.frombuffer(file.read(REPLAY_BYTES), np.uint8)
            for orders in self.reader.batches(data, start):
                beat()
                self.match(orders)
            if self.reader.at == start:  # the journal has no further record
                return

    def match(self, orders: FrameBatch) -> None:
        """Match orders of the journal, and keep their answers."""
        first = 0
        while first < orders.count:
            self._batch.clear()
            answers_before = self.engine.counts.answers
            checksum_before = self.sums.answers.copy()
            end, _ = self.engine.handle(orders, self._batch, first)
            self.sums.orders.update(orders.span(first, end))
            answers = self._batch.span(0, self._batch.count)
            self.sums.answers.update(answers)
            offsets = self._batch.offsets[: self._batch.count + 1]
            self._remember(RecentAnswers(answers_before, checksum_before, answers.copy(), offsets.copy()))
            first = end

    def _remember(self, recent: RecentAnswers) -> None:
        """Keep these answers, and drop the oldest beyond RECENT_BYTES."""
        self._recent.append(recent)
        self._recent_bytes += len(recent.buffer)
        while self._recent_bytes > RECENT_BYTES and len(self._recent) > 1:
            self._recent_bytes -= len(self._recent.popleft().buffer)

    def answers_after(self, gateway_resume: Resume) -> list[RecentAnswers] | None:
        """Return the answers that a gateway with this resume lacks; None if some of them are no longer in memory.

        The first element begins at or before the gateway's last answer, so it may begin with answers that the gateway
        has.
        """
        if not self._recent:  # nothing was matched after the snapshot
            has_every_answer = gateway_resume.messages == self.engine.counts.answers
            has_same_answers = gateway_resume.checksum == self.sums.answers.value
            return [] if has_every_answer and has_same_answers else None
        recent = list(self._recent)
        first_index = None
        for index, answers in enumerate(recent):
            # Stop at the last element with an answer that the gateway has; at answer 0 if the gateway has none.
            if answers.answers_before < max(gateway_resume.messages, 1):
                first_index = index
        if first_index is None:
            return None
        return recent[first_index:]
