"""The session that an engine resumes: its journal, and the answers that its gateway lacks."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from typing import Any

from exchange import messages
from exchange.checksum import StreamChecksum
from exchange.compiled import cached_kernel
from exchange.messages import Resume
from exchange.session import Disagreement
from matching_engine import encoding
from matching_engine.encoding import ANSWER_SIZES
from matching_engine.engine import MatchingEngine
from matching_engine.recovering import snapshots
from matching_engine.recovering.follower import Follower, RecentAnswers
from matching_engine.recovering.journal import InputJournal
from matching_engine.recovering.journal_records import crc32c, find_record
from matching_engine.recovering.pulse import Pulse, PulsingLink
from matching_engine.turns import Sums
from transports.base import Link
from transports.frames import Bytes, FrameBatch, Longs


@cached_kernel(messages, encoding)
def _count_answers(
    buffer: Bytes, offsets: Longs, first_frame: int, end_frame: int, most_answers: int
) -> tuple[int, int]:
    """Count the answers in whole frames from `first_frame` on, up to `end_frame`, and no more than `most_answers`.

    Returns (the end of the counted frames, the number of answers in them). It stops before a frame with which there
    would be more than `most_answers`.
    """
    answers = 0
    for frame in range(first_frame, end_frame):
        at = offsets[frame]
        in_frame = 0
        while at < offsets[frame + 1]:
            at += ANSWER_SIZES[buffer[at]]
            in_frame += 1
        if answers + in_frame > most_answers:
            return frame, answers
        answers += in_frame
    return end_frame, answers


EVERY_ANSWER = 1 << 62
"""A number of answers to skip that no session reaches."""


class ResumedSession:
    """One engine's journal, and the answers that it owes to the session that was resumed last."""

    def __init__(
        self,
        journal: InputJournal,
        link: Link,
        open_link: Callable[[int], Link],
        follower: Follower | None = None,
    ) -> None:
        """`open_link` opens the link again after a break; a `follower` has matched the journal so far."""
        self.journal = journal
        self.pulse = Pulse(Pulse.path(journal.path))
        self.pulse.begin(goes_on=journal.orders > 0)
        self.link = PulsingLink(link, open_link, self.pulse)
        self._follower = follower
        self.is_resumed = False
        """Whether the gateway has all answers so far, or the engine is about to send them."""
        self.is_confirmed = False
        """Whether the gateway has said that it has the engine's end."""
        self.stale_frames = 0
        """Frames of earlier sessions, which were dropped."""
        self._orders_in_snapshot = 0
        self._to_skip = 0
        """Answers that are still to be made again, but not sent: the gateway has them."""
        self._checksum = StreamChecksum()
        """The checksum of the answers made again so far."""
        self._theirs = Resume(session=0, messages=0, checksum=0)
        """The gateway's latest resume, which says which answers it has."""
        self._sessions = 0
        self._replayed_orders = 0
        self._began_ns = 0
        self._replay_ns = 0

    @staticmethod
    def warm() -> None:
        """Compile the kernels, or load them from disk."""
        nothing = FrameBatch(1)
        crc32c(nothing.buffer[:0])
        find_record(nothing.buffer[:0], 0, 0)
        _count_answers(nothing.buffer, nothing.offsets, 0, 0, 0)

    def is_new(self, theirs: Resume) -> bool:
        """Return False for a resume that a broker delivers again, after an earlier engine has had it."""
        return theirs.session > self.journal.session

    def begin(self, theirs: Resume) -> None:
        """Begin a session with a gateway. The answers that it has are made again and compared, but not sent.

        JournalFailed if the beginning cannot be written into the journal.
        """
        self._theirs = theirs
        self._to_skip = theirs.messages
        self._checksum = StreamChecksum()
        self.journal.begin(theirs)
        self._began_ns = time.monotonic_ns()
        self._sessions += 1

    def skip_every_answer(self) -> None:
        """Note that the gateway has every answer, so that none is sent."""
        self._to_skip = EVERY_ANSWER
        self._began_ns = time.monotonic_ns()

    def take_follower(
        self, engine: MatchingEngine, beat: Callable[[], None]
    ) -> tuple[Follower, list[RecentAnswers]] | None:
        """Return a follower that has matched the whole journal, and its latest answers.

        The follower is a standby's, or begins with a snapshot. None if there is neither, or if the gateway also lacks
        answers that the follower no longer has. `beat` is called often meanwhile.
        """
        follower = self._follower
        if follower is None:
            follower = self._follower_from_snapshot(engine, beat)
        self._follower = None
        if follower is None:
            return None
        answers = follower.answers_after(self._theirs)
        if answers is None:
            return None
        self._to_skip = 0
        if answers:
            self._to_skip = self._theirs.messages - answers[0].answers_before
            self._checksum = answers[0].checksum_before.copy()
        return follower, answers

    def _follower_from_snapshot(self, engine: MatchingEngine, beat: Callable[[], None]) -> Follower | None:
        follower = Follower.from_snapshot(self.journal.path, engine)
        if follower is not None:
            follower.follow(beat)
        return follower

    def note_replayed(self, orders: int) -> None:
        """Note how many orders were matched again. From now on orders are new ones."""
        self.is_resumed = True
        self._replayed_orders += orders
        self._replay_ns += time.monotonic_ns() - self._began_ns

    @property
    def skips_nothing(self) -> bool:
        """Whether the gateway lacks every answer from now on, so that all of them are sent."""
        return self.is_resumed and self._to_skip == 0

    def skip_known(self, answers: FrameBatch, first: int) -> int:
        """Skip the answers that the gateway has: return the first frame from `first` on that it lacks.

        Disagreement if the gateway has other answers than these.
        """
        if self._to_skip == 0:
            return first
        end, skipped = _count_answers(answers.buffer, answers.offsets, first, answers.count, self._to_skip)
        self._checksum.update(answers.span(first, end))
        self._to_skip -= skipped
        # Some are still to be skipped, but fewer than the next frame holds: `_count_answers` stopped before that frame.
        ends_within_frame = self._to_skip > 0 and end < answers.count
        has_other_answers = self._to_skip == 0 and self._checksum.value != self._theirs.checksum
        if ends_within_frame or has_other_answers:
            raise Disagreement(
                f"{self.journal.path} gives other answers than the {self._theirs.messages:,} that the gateway has: "
                "it is the journal of another gateway; give another folder with --journal, or remove that file"
            )
        return end

    def keep_snapshot(self, engine: MatchingEngine, sums: Sums) -> None:
        """Write a snapshot if one is due. The engine must have matched every order of the journal.

        If the snapshot cannot be written, the previous one stays. The next attempt comes EVERY_ORDERS later either way.
        """
        orders = self.journal.orders
        is_due = orders - self._orders_in_snapshot >= snapshots.EVERY_ORDERS
        if is_due and engine.book.arena.nbytes <= snapshots.LARGEST_BYTES:
            self._orders_in_snapshot = orders
            with contextlib.suppress(OSError):
                snapshots.write_snapshot(self.journal, engine, sums)

    def facts(self) -> dict[str, Any]:
        """Return the `journal` of a result."""
        return {
            **self.journal.facts(),
            "sessions": self._sessions,
            "orders_replayed": self._replayed_orders,
            "replay_s": self._replay_ns / 1e9,
            "stale_frames": self.stale_frames,
        }
