"""A standby: a second engine that follows the journal of the first, and takes its place once the first is gone.

    gateway ── orders ──▶ engine ── journal ──▶ standby, which matches the orders, too, and sends nothing

The journal's lock decides which process is the engine: only one process has the lock, and none answers without it. The
kernel takes the lock from a process that dies. A process that lives but shows no pulse is killed by the standby, so
that it sends nothing more. Then the gateway resumes its session with the standby, as with an engine that was started
again.
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
"""The time between two looks at the journal and its lock."""
SILENT_LOOKS = 200
"""After this many looks without a pulse, 1 s, an engine counts as frozen. Stalls of the standby do not count."""


class Standby:
    """A component's service: follows until it has the journal's lock, then serves as the engine."""

    def __init__(
        self,
        follower: Follower,
        take_journal: Callable[[], InputJournal],
        open_service: Callable[[InputJournal], RecoveringEngine],
        on_takeover: Callable[[RecoveringEngine], None],
    ) -> None:
        """`take_journal` opens the journal, and lets the follower match the rest of it.

        It raises JournalIsOthers as long as the first engine lives. `on_takeover` is called before the service runs.
        """
        self._follower = follower
        self._take_journal = take_journal
        self._open_service = open_service
        self._on_takeover = on_takeover
        self._service: RecoveringEngine | None = None
        self._is_stopped = False
        self._last_pulse = (0, 0)
        """The process and its beats at the last look."""
        self._silent_looks = 0
        """Looks since the last beat."""

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
        """Follow until the first engine is gone, then serve in its place, and return the result.

        None if the first engine ended its session, or this standby was stopped before.
        """
        while not self._is_stopped:
            self._follower.follow()
            journal = self._try_journal()
            if journal is None:
                time.sleep(LOOK_S)
                continue
            if Pulse(Pulse.path(journal.path)).is_ended:
                journal.abandon()
                return None
            return self._serve(journal)
        return None

    def _try_journal(self) -> InputJournal | None:
        """Return the journal; None if another engine has it, which is killed if it shows no pulse."""
        try:
            return self._take_journal()
        except JournalIsOthers:
            self._end_silent_engine()
            return None

    def _serve(self, journal: InputJournal) -> EngineResult:
        """Serve as the engine to the end of the session."""
        self._service = self._open_service(journal)
        journal.start_syncing()
        self._on_takeover(self._service)
        if self._is_stopped:
            self._service.stop("interrupted")
        return self._service.run()

    def _end_silent_engine(self) -> None:
        """Kill the process that has the lock, if it has served and shows no pulse now."""
        path = Pulse.path(self._follower.path)
        pulse = Pulse(path)
        need_not_beat = pulse.beats == 0
        has_beaten = (pulse.pid, pulse.beats) != self._last_pulse
        self._last_pulse = (pulse.pid, pulse.beats)
        if need_not_beat or has_beaten:
            self._silent_looks = 0
        else:
            self._silent_looks += 1
        if self._silent_looks >= SILENT_LOOKS and _has_open(pulse.pid, path):
            self._silent_looks = 0
            with contextlib.suppress(ProcessLookupError):  # it has just died
                os.kill(pulse.pid, signal.SIGKILL)

    def close(self) -> None:
        if self._service:
            self._service.close()


def _has_open(pid: int, pulse: Path) -> bool:
    """Return whether this process is the engine that has this pulse, not a later process with the same number."""
    try:
        return any(Path(mapped.path) == pulse.resolve() for mapped in psutil.Process(pid).memory_maps())
    except psutil.Error:
        return False
