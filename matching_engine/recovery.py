"""Resuming: the engine matches its journal again, and sends the answers that its gateway lacks."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from exchange import messages
from exchange.checksum import StreamChecksum
from exchange.compiled import cached_kernel
from exchange.messages import Resume
from exchange.session import Disagreement
from matching_engine import encoding, snapshots
from matching_engine.encoding import ANSWER_SIZES
from matching_engine.engine import MatchingEngine
from matching_engine.follower import Follower, Recent
from matching_engine.journal import InputJournal
from matching_engine.journal_records import crc32c, find_record
from matching_engine.turns import Sums
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


EVERY_ANSWER = 1 << 62
_PROCESS, _BEATS, _ENDED, _CLOCK_START_NS, _NUMBERS = range(5)


class Pulse:
    """Numbers in a file beside the journal: a standby sees that the engine lives, and knows when its clock started."""

    def __init__(self, path: Path) -> None:
        with path.open("ab") as file:  # which another process may be making, too
            file.truncate(_NUMBERS * 8)
        self._numbers = np.memmap(path, np.int64, "r+", shape=(_NUMBERS,))

    @staticmethod
    def path(journal: Path) -> Path:
        """The file of the engine that has this journal."""
        return journal.with_suffix(".pulse")

    def begin(self, goes_on: bool) -> None:
        """Note that this process is the engine now. If it goes on with a session, the clock of that stays."""
        self._numbers[:_CLOCK_START_NS] = os.getpid(), 0, 0
        self._numbers[_CLOCK_START_NS] *= goes_on

    def clock_start_ns(self, now_ns: int) -> int:
        """When the clock of the session's first engine started; it starts now if there was none since the host did."""
        if not 0 < self._numbers[_CLOCK_START_NS] <= now_ns:
            self._numbers[_CLOCK_START_NS] = now_ns
        return int(self._numbers[_CLOCK_START_NS])

    def beat(self) -> None:
        self._numbers[_BEATS] += 1

    def rest(self) -> None:
        """Stop the pulse; a missing pulse means nothing from now on."""
        self._numbers[_BEATS] = 0

    def end(self) -> None:
        """Note that the engine ended its session, so that no standby takes its place."""
        self._numbers[_ENDED] = 1

    @property
    def pid(self) -> int:
        return int(self._numbers[_PROCESS])

    @property
    def beats(self) -> int:
        """0 if the engine does not serve yet, or no longer."""
        return int(self._numbers[_BEATS])

    @property
    def is_ended(self) -> bool:
        return bool(self._numbers[_ENDED])


class Recovery:
    """One engine's journal, and what it owes to the session that was resumed last."""

    def __init__(self, journal: InputJournal, link: RenewableLink, follower: Follower | None = None) -> None:
        """A `follower` has matched the journal so far."""
        self.journal, self.link = journal, link
        self.pulse = Pulse(Pulse.path(journal.path))
        self.pulse.begin(goes_on=journal.orders > 0)
        self._follower = follower
        self.is_resumed = self.is_confirmed = False
        self.stale_frames = self._orders_in_snapshot = 0
        self._to_pass_over, self._checksum = 0, StreamChecksum()
        """Answers that are still to be made again and not sent, and the checksum of those made again so far."""
        self._theirs = Resume(0, 0, 0)
        self._sessions = self._replayed = 0
        self._replay_ns = 0

    @staticmethod
    def warm() -> None:
        """Compile the kernels, or load them from disk."""
        nothing = FrameBatch(1)
        crc32c(nothing.buffer[:0])
        find_record(nothing.buffer[:0], 0, 0)
        _count_answers(nothing.buffer, nothing.offsets, 0, 0, 0)

    def is_new(self, theirs: Resume) -> bool:
        """False for a resume that a broker delivers once more, after an earlier engine."""
        return theirs.session > self.journal.session

    def begin(self, theirs: Resume) -> None:
        """The gateway has these answers: they are made again, compared, and not sent again."""
        self._theirs, self._to_pass_over, self._checksum = theirs, theirs.messages, StreamChecksum()
        self.journal.begin(theirs)
        self._began_ns = time.monotonic_ns()
        self._sessions += 1

    def send_none(self) -> None:
        """Note that the gateway has every answer."""
        self._to_pass_over = EVERY_ANSWER
        self._began_ns = time.monotonic_ns()

    def take_follower(self, engine: MatchingEngine, beat: Callable[[], None]) -> tuple[Follower, list[Recent]] | None:
        """The orders that a standby matched, or that a snapshot saves, and the answers that the gateway may lack.

        None where this is not all that the gateway lacks. `beat` is called often meanwhile.
        """
        follower, self._follower = self._follower or self._from_snapshot(engine, beat), None
        answers = follower.behind(self._theirs) if follower else None
        if follower is None or answers is None:
            return None
        self._to_pass_over = 0
        if answers:
            self._to_pass_over, self._checksum = self._theirs.messages - answers[0].before, answers[0].checksum.copy()
        return follower, answers

    def _from_snapshot(self, engine: MatchingEngine, beat: Callable[[], None]) -> Follower | None:
        if follower := Follower.from_snapshot(self.journal.path, engine):
            follower.follow(beat)
        return follower

    def done(self, replayed: int) -> None:
        """Note how many orders were matched again; new ones follow."""
        self.is_resumed = True
        self._replayed += replayed
        self._replay_ns += time.monotonic_ns() - self._began_ns

    @property
    def sends_all(self) -> bool:
        """Whether the gateway lacks every answer from now on, so that all of them are sent."""
        return self.is_resumed and not self._to_pass_over

    def pass_over(self, answers: FrameBatch, first: int) -> int:
        """The first frame from `first` on that the gateway lacks. Disagreement if the gateway's answers are others."""
        if not self._to_pass_over:
            return first
        end, found = _count_answers(answers.buffer, answers.offsets, first, answers.count, self._to_pass_over)
        self._checksum.update(answers.span(first, end))
        self._to_pass_over -= found
        is_between = self._to_pass_over > 0 and end < answers.count
        if is_between or (self._to_pass_over == 0 and self._checksum.value != self._theirs.checksum):
            raise Disagreement(
                f"{self.journal.path} gives other answers than the {self._theirs.messages:,} that the gateway has: "
                "it is the journal of another gateway; give another folder with --journal, or remove that file"
            )
        return end

    def keep_snapshot(self, engine: MatchingEngine, sums: Sums) -> None:
        """Write a snapshot if it is due, of an engine that has matched every order of the journal.

        If it cannot be written, the one before stays, and the next attempt is as far away as after a success.
        """
        orders = self.journal.orders
        is_due = orders - self._orders_in_snapshot >= snapshots.EVERY_ORDERS
        if is_due and engine.book.arena.nbytes <= snapshots.LARGEST_BYTES:
            self._orders_in_snapshot = orders
            with contextlib.suppress(OSError):
                snapshots.write_snapshot(self.journal, engine, sums)

    def facts(self) -> dict[str, Any]:
        """The `journal` of a result."""
        return {
            **self.journal.facts(),
            "sessions": self._sessions,
            "orders_replayed": self._replayed,
            "replay_s": self._replay_ns / 1e9,
            "stale_frames": self.stale_frames,
        }
