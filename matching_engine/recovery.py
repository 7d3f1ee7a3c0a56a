"""Resuming: the engine matches its journal again, and sends the answers that its gateway lacks."""

from __future__ import annotations

import time
from typing import Any

from exchange import messages
from exchange.compiled import cached_kernel
from exchange.messages import Resume
from exchange.results import StreamChecksum
from exchange.session import Disagreement
from matching_engine import encoding
from matching_engine.encoding import ANSWER_SIZES
from matching_engine.journal import InputJournal
from transports.frames import Bytes, FrameBatch, Longs
from transports.renewable import RenewableLink


@cached_kernel(messages, encoding)
def _count_answers(buffer: Bytes, offsets: Longs, first: int, count: int, most: int) -> tuple[int, int]:
    """The end of the frames from `first` on that hold `most` answers at most, and how many they hold."""
    found = 0
    for frame in range(first, count):
        at, here = offsets[frame], 0
        while at < offsets[frame + 1]:
            at += ANSWER_SIZES[buffer[at]]
            here += 1
        if found + here > most:
            return frame, found
        found += here
    return count, found


class Recovery:
    """One engine's journal, and what it owes to the session that was resumed last."""

    def __init__(self, journal: InputJournal, link: RenewableLink) -> None:
        self.journal, self.link = journal, link
        self.is_resumed = self.is_confirmed = False
        self.stale_frames = 0
        self._known, self._checksum = 0, StreamChecksum()
        self._theirs = Resume(0, 0, 0)
        self._sessions = self._replayed = 0
        self._replay_ns = 0

    def warm(self) -> None:
        """Compile the kernels, or load them from disk."""
        self.journal.warm()
        nothing = FrameBatch(1)
        _count_answers(nothing.buffer, nothing.offsets, 0, 0, 0)

    def is_new(self, theirs: Resume) -> bool:
        """False for a resume that a broker delivers once more, after an earlier engine."""
        return theirs.session > self.journal.session

    def begin(self, theirs: Resume) -> None:
        """The gateway has these answers: they are made again, compared, and not sent again."""
        self._theirs, self._known, self._checksum = theirs, theirs.messages, StreamChecksum()
        self.journal.begin(theirs)
        self._began_ns = time.monotonic_ns()
        self._sessions += 1

    def done(self) -> None:
        """The journal has been matched again; orders come."""
        self.is_resumed = True
        self._replayed += self.journal.orders
        self._replay_ns += time.monotonic_ns() - self._began_ns

    @property
    def owes_nothing(self) -> bool:
        """Whether orders come, and the gateway lacks the answers to all of them."""
        return self.is_resumed and not self._known

    def pass_over(self, answers: FrameBatch, first: int) -> int:
        """The first frame from `first` on that the gateway lacks. Disagreement if what it has is something else."""
        if not self._known:
            return first
        end, found = _count_answers(answers.buffer, answers.offsets, first, answers.count, self._known)
        self._checksum.update(answers.span(first, end))
        self._known -= found
        is_between = self._known > 0 and end < answers.count
        if is_between or (self._known == 0 and self._checksum.value != self._theirs.checksum):
            raise Disagreement(
                f"{self.journal.path} gives other answers than the {self._theirs.messages:,} that the gateway has: "
                "it is the journal of another gateway"
            )
        return end

    def facts(self) -> dict[str, Any]:
        """The `journal` of a result."""
        return {
            **self.journal.facts(),
            "sessions": self._sessions,
            "orders_replayed": self._replayed,
            "replay_s": self._replay_ns / 1e9,
            "stale_frames": self.stale_frames,
        }
