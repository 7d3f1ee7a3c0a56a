"""Follows a journal: matches its orders as they come and keeps the latest answers, to go on in an engine's place."""

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
"""The latest answers that are kept; a gateway that lacks more gets them from the journal, matched again."""


class RecentAnswers(NamedTuple):
    """Frames of answers, with the number of answers before them and their checksum."""

    before: int
    checksum: StreamChecksum
    buffer: Bytes
    offsets: Longs

    def copy_into(self, answers: FrameBatch) -> None:
        """Fill the batch with these frames; it grows where the batch in which they were written had to."""
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
        self.begun_behind = self.reader.orders
        """Orders in the snapshot, which need not be matched."""
        self.path = path
        self._batch = FrameBatch(1 << 18, 1 << 21)
        self._recent: deque[RecentAnswers] = deque()
        self._recent_bytes = 0

    @classmethod
    def from_snapshot(cls, path: Path, engine: MatchingEngine) -> Follower | None:
        """A follower that begins behind the journal's snapshot, with such an engine; None without one that fits."""
        follower = cls(path, engine.renewed()) if snapshot_path(path).exists() else None
        return follower if follower and follower.begun_behind else None

    def follow(self, beat: Callable[[], None] = lambda: None) -> None:
        """Match what has come since the last call; `beat` is called before each batch of it."""
        before = -1
        while self.reader.has_begun(self.path) and self.reader.at > before:
            before = self.reader.at
            with self.path.open("rb") as file:
                file.seek(before)
                data = np.frombuffer(file.read(REPLAY_BYTES), np.uint8)
            for orders in self.reader.batches(data, before):
                beat()
                self.match(orders)

    def match(self, orders: FrameBatch) -> None:
        """Match orders that were answered by the engine, or soon will be by this one."""
        first = 0
        while first < orders.count:
            self._batch.clear()
            before = self.engine.counts.answers
            checksum = self.sums.answers.copy()
            end, _ = self.engine.handle(orders, self._batch, first)
            self.sums.orders.update(orders.span(first, end))
            answered = self._batch.span(0, self._batch.count)
            self.sums.answers.update(answered)
            self._remember(
                RecentAnswers(before, checksum, answered.copy(), self._batch.offsets[: self._batch.count + 1].copy())
            )
            first = end

    def _remember(self, recent: RecentAnswers) -> None:
        self._recent.append(recent)
        self._recent_bytes += len(recent.buffer)
        while self._recent_bytes > RECENT_BYTES and len(self._recent) > 1:
            self._recent_bytes -= len(self._recent.popleft().buffer)

    def behind(self, theirs: Resume) -> list[RecentAnswers] | None:
        """Return the answers from a little before the gateway's last one on; None if they are no longer in memory."""
        if not self._recent:
            ours = self.engine.counts.answers, self.sums.answers.value
            return [] if (theirs.messages, theirs.checksum) == ours else None
        recent = list(self._recent)
        starts = [index for index, answers in enumerate(recent) if answers.before < max(theirs.messages, 1)]
        if not starts:
            return None
        return recent[starts[-1] :]
