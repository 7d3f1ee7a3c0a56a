"""The pulse of an engine: it shows a standby that the engine lives. The standby kills an engine without a pulse."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from transports.base import Link
from transports.frames import FrameBatch
from transports.renewable import RenewableLink

BEAT_NS = 100_000_000
"""An engine shows its pulse at least this often."""

# Places of the numbers in the file.
_PROCESS = 0
"""The process that is the engine now."""
_BEATS = 1
"""Beats so far; 0 if no standby may expect a pulse."""
_ENDED = 2
"""1 once the engine has ended its session."""
_CLOCK_START_NS = 3
"""When the clock of the session's first engine started."""
_LENGTH = 4
"""The number of numbers."""


class Pulse:
    """Numbers in a file beside the journal: a standby sees that the engine lives, and knows when its clock started."""

    def __init__(self, path: Path) -> None:
        # Another process may make the file at the same time. Appending keeps its numbers, and truncate only extends.
        with path.open("ab") as file:
            file.truncate(_LENGTH * 8)
        self._numbers = np.memmap(path, np.int64, "r+", shape=(_LENGTH,))

    @staticmethod
    def path(journal: Path) -> Path:
        """Return the file of the engine that has this journal."""
        return journal.with_suffix(".pulse")

    def begin(self, goes_on: bool) -> None:
        """Note that this process is the engine now. If it goes on with a session, the session's clock stays."""
        self._numbers[_PROCESS] = os.getpid()
        self._numbers[_BEATS] = 0
        self._numbers[_ENDED] = 0
        if not goes_on:
            self._numbers[_CLOCK_START_NS] = 0

    def clock_start_ns(self, now_ns: int) -> int:
        """Return when the clock of the session's first engine started, which all later engines share.

        The clock starts now if there is no such time, or if it is from before the host's last start.
        """
        if not 0 < self._numbers[_CLOCK_START_NS] <= now_ns:
            self._numbers[_CLOCK_START_NS] = now_ns
        return int(self._numbers[_CLOCK_START_NS])

    def beat(self) -> None:
        """Show that the engine lives."""
        self._numbers[_BEATS] += 1

    def rest(self) -> None:
        """Set the beats to 0: a standby does not expect a pulse from an engine with 0 beats."""
        self._numbers[_BEATS] = 0

    def end(self) -> None:
        """Note that the engine ended its session, so that no standby takes its place."""
        self._numbers[_ENDED] = 1

    @property
    def pid(self) -> int:
        return int(self._numbers[_PROCESS])

    @property
    def beats(self) -> int:
        """Beats so far; 0 if the engine does not serve yet, or no longer."""
        return int(self._numbers[_BEATS])

    @property
    def is_ended(self) -> bool:
        return bool(self._numbers[_ENDED])


class PulsingLink(RenewableLink):
    """The link of an engine to its gateway. The pulse beats whenever the engine sends or waits, which it does often."""

    def __init__(self, link: Link, open_link: Callable[[int], Link], pulse: Pulse) -> None:
        super().__init__(link, open_link)
        self._pulse = pulse

    def send(self, batch: FrameBatch, first: int) -> int:
        self._pulse.beat()
        return super().send(batch, first)

    def wait(self, until_ns: int, readable: bool = True, writable: bool = False) -> None:
        """Wait until `until_ns`, but no longer than to the next beat."""
        self._pulse.beat()
        super().wait(min(until_ns, time.monotonic_ns() + BEAT_NS), readable, writable)
