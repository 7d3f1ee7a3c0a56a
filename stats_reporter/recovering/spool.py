"""The spool of a reporter that a successor can replace: beside the newest file is the reporter's state by then."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson

from exchange.instances import spool_file
from stats_reporter.writer import SpoolWriter


class ReplaceableSpool(SpoolWriter):
    """Continues numbering after the existing files, and writes the reporter's `state` beside the newest file."""

    def __init__(self, folder: Path, clock: Callable[[], float] = time.monotonic, instance: int = 1) -> None:
        super().__init__(folder, clock, instance)
        self.state: Callable[[], dict[str, Any]] = dict
        self.state_before: dict[str, Any] | None = None
        """The state that the killed reporter wrote beside the newest file; None for the first reporter."""
        while self._path(self.files + 1).exists():
            self.files += 1
        with contextlib.suppress(FileNotFoundError, orjson.JSONDecodeError):  # not JSON: killed as it wrote its first
            self.state_before = orjson.loads(self._state_path(self.files).read_bytes())

    def note_state(self) -> None:
        """Write the state that belongs to the files so far, before the newest of them appears."""
        self._state_path(self.files).write_bytes(orjson.dumps(self.state(), option=orjson.OPT_NON_STR_KEYS))

    def close(self) -> None:
        """Remove the state: the run is over."""
        self._state_path(self.files).unlink(missing_ok=True)

    def _publish_file(self, hidden: Path, final: Path) -> None:
        self.note_state()
        super()._publish_file(hidden, final)
        self._state_path(self.files - 1).unlink(missing_ok=True)

    def _state_path(self, number: int) -> Path:
        return self._folder / f".{spool_file(number, self._instance)}.state"
