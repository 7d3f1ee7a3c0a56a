"""A standby: a second engine that follows the journal of the first, and takes its place once that is gone.

    gateway ── orders ──▶ engine ── journal ──▶ standby, which matches them too and sends nothing

The journal's lock decides which process is the engine: only one has it, and none answers without it. The kernel takes
the lock from a process that dies. A process that lives but shows no pulse is killed for it, so whatever it was about
to send stays unsent. Then the gateway resumes its session with the standby, as with an engine that was started again.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import psutil

from exchange.results import EngineResult
from matching_engine.recovering.engine import RecoveringEngine
from matching_engine.recovering.follower import Follower
from matching_engine.recovering.journal import InputJournal, JournalIsOthers
from matching_engine.recovering.pulse import Pulse
from matching_engine.recovering.resumed_session import ResumedSession
from matching_engine.turns import warm_turns

LOOK_S = 0.005
"""Between two looks at the journal and its lock."""
SILENT_LOOKS = 200
"""Looks without a pulse after which an engine is taken for frozen: 1 s or more. The standby's stalls do not count."""


class Standby:
    """A component's service: follows until it has the journal's lock, then serves as the engine."""

    def __init__(
        self,
        follower: Follower,
        take_journal: Callable[[], InputJournal],
        open_service: Callable[[InputJournal], RecoveringEngine],
        on_takeover: Callable[[RecoveringEngine], None],
    ) -> None:
        """`take_journal` lets the follower match the rest; JournalIsOthers as long as the first engine lives."""
        self._follower = follower
        self._take_journal = take_journal
        self._open_service = open_service
        self._on_takeover = on_takeover
        self._service: RecoveringEngine | None = None
        self._is_stopped = False
        self._seen = (0, 0)
        self._looks = 0

    def warm(self) -> None:
        """Load every kernel, so that taking over compiles nothing."""
        self._follower.engine.warm()
        warm_turns(self._follower.engine)
        ResumedSession.warm()

    def stop(self, reason: str) -> None:
        self._is_stopped = True
        if self._service:
            self._service.stop(reason)

    def run(self) -> EngineResult | None:
        """None if the first engine ended its session, or this one was stopped before."""
        while not self._is_stopped:
            self._follower.follow()
            if journal := self._try_journal():
                if Pulse(Pulse.path(journal.path)).is_ended:
                    journal.abandon()
                    return None
                return self._serve(journal)
            time.sleep(LOOK_S)
        return None

    def _try_journal(self) -> InputJournal | None:
        try:
            return self._take_journal()
        except JournalIsOthers:
            self._end_silent_engine()
            return None

    def _serve(self, journal: InputJournal) -> EngineResult:
        self._service = self._open_service(journal)
        journal.start_syncing()
        self._on_takeover(self._service)
        if self._is_stopped:
            self._service.stop("interrupted")
        return self._service.run()

    def _end_silent_engine(self) -> None:
        """Kill the process that has the lock, if it served once and shows no pulse now."""
        path = Pulse.path(self._follower.path)
        pulse = Pulse(path)
        is_alive = pulse.beats == 0 or (pulse.pid, pulse.beats) != self._seen
        self._seen = (pulse.pid, pulse.beats)
        if is_alive:
            self._looks = 0
        else:
            self._looks += 1
        if self._looks >= SILENT_LOOKS and _has_open(pulse.pid, path):
            self._looks = 0
            with contextlib.suppress(ProcessLookupError):  # it has just died
                os.kill(pulse.pid, signal.SIGKILL)

    def close(self) -> None:
        if self._service:
            self._service.close()


def _has_open(pid: int, pulse: Path) -> bool:
    """Whether the process is the engine that has this pulse, and no later one with the same number."""
    try:
        return any(Path(mapped.path) == pulse.resolve() for mapped in psutil.Process(pid).memory_maps())
    except psutil.Error:
        return False
