"""The intake of answers from several engines: each session's answers are hashed and counted apart."""

from __future__ import annotations

import time

from exchange.messages import End, Hello, read
from exchange.results import HashedStream
from gateway.completion import Completion
from gateway.engines.sessions import EngineLinks, EngineSession
from gateway.intake import Intake
from transports.frames import Longs


class DividedIntake(Intake):
    """Receives from each engine in turn. `end` is there once every engine's end has come: the sum of all."""

    def __init__(self, links: EngineLinks, completion: Completion, stream: HashedStream) -> None:
        super().__init__(links, completion, stream)
        self._sessions = links.sessions
        self._session = self._sessions[0]
        """The session whose frames are in the batch."""

    def take(self) -> int:
        """Receive once from each engine. Returns how many frames came."""
        frames = 0
        for session in self._sessions:
            frames_of_engine = session.receive(self.batch)
            if frames_of_engine:
                self.read_of(session, 0, time.monotonic_ns())
            frames += frames_of_engine
        return frames

    def read_of(self, session: EngineSession, first: int, now_ns: int) -> None:
        """Record a session's frames from `first` on, which came at `now_ns`."""
        self._session = session
        self.read(first, now_ns)

    def note(self, first: int, end: int, sampled: Longs, now_ns: int) -> None:
        self.stream = self._session.answers
        self._session.answers_received += end - first
        super().note(first, end, sampled, now_ns)

    def note_turns(self, recorded_ns: int, sampled: Longs) -> None:
        """Note what compiled turns recorded: the time of the latest answers, 0 for none, and the sampled orders."""
        self.last_answer_ns = recorded_ns or self.last_answer_ns
        if len(sampled):
            self.on_sampled(sampled)

    def _read_foreign(self, frame: bytes) -> None:
        session = self._session
        match read(frame):
            case End() as end if session.end is None:
                session.end = end
                self.end = self._sum_of_ends()
            case Hello() as hello if session.hello is None:
                session.hello = hello
            case _:
                if frame:  # an empty frame only shows that the engine is there
                    self.junk += 1

    def _sum_of_ends(self) -> End | None:
        """Return the ends of all engines together, checksums modulo 2^64; None until each has come."""
        sums = End(sent=0, sent_checksum=0, received=0, received_checksum=0)
        for session in self._sessions:
            if session.end is None:
                return None
            sums = End(
                sent=sums.sent + session.end.sent,
                sent_checksum=(sums.sent_checksum + session.end.sent_checksum) % 2**64,
                received=sums.received + session.end.received,
                received_checksum=(sums.received_checksum + session.end.received_checksum) % 2**64,
            )
        return sums
