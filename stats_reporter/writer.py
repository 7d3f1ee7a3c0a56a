"""Writes the spool, JSON lines for Spark: each file under a dot-name first, then renamed, so it appears whole."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson

from exchange.instances import spool_file

FILE_SECONDS = 0.7
"""Less than a second: a reader that looks every second finds the previous one."""
FILE_BYTES = 1 << 22


class SpoolWriter:
    """Collects lines: a file FILE_SECONDS after the first of them, or at FILE_BYTES. OSError where the disk refuses.

    One that `recovers` goes on behind the files that are there, and notes beside the newest what `state` is with it.
    """

    def __init__(
        self, folder: Path, clock: Callable[[], float] = time.monotonic, instance: int = 1, recovers: bool = False
    ) -> None:
        self._folder, self._clock = folder, clock
        self._instance, self.recovers = instance, recovers
        self.state: Callable[[], dict[str, Any]] = dict
        self.state_before: dict[str, Any] | None = None
        """The state with the newest file; None for the first writer."""
        self._lines: list[bytes] = []
        self._bytes = 0
        self._opened_s = clock()
        self.files = 0
        folder.mkdir(parents=True, exist_ok=True)
        if recovers:
            self._recover()

    def _recover(self) -> None:
        while self._path(self.files + 1).exists():
            self.files += 1
        with contextlib.suppress(FileNotFoundError):
            self.state_before = orjson.loads(self._state_path(self.files).read_bytes())

    def _path(self, number: int) -> Path:
        return self._folder / spool_file(number, self._instance)

    def _state_path(self, number: int) -> Path:
        return self._folder / f".{spool_file(number, self._instance)}.state"

    def note_state(self) -> None:
        """Note the state that goes with the files so far, before the newest of them appears."""
        if self.recovers:
            self._state_path(self.files).write_bytes(orjson.dumps(self.state(), option=orjson.OPT_NON_STR_KEYS))

    def close(self) -> None:
        self._state_path(self.files).unlink(missing_ok=True)

    def write(self, line: bytes) -> None:
        if not self._lines:
            self._opened_s = self._clock()
        self._lines.append(line)
        self._bytes += len(line) + 1

    @property
    def left_s(self) -> float:
        """The time until `roll` will publish; endless without any line."""
        return max(self._opened_s + FILE_SECONDS - self._clock(), 0.0) if self._lines else math.inf

    def roll(self) -> None:
        """Publish the lines, if it is time."""
        if self._bytes >= FILE_BYTES or self.left_s < 0.001:
            self.publish()

    def publish(self) -> None:
        """Publish the lines, if there are any."""
        if not self._lines:
            return
        self.files += 1
        final = self._path(self.files)
        hidden = self._folder / f".{final.name}.part"
        try:
            hidden.write_bytes(b"\n".join(self._lines) + b"\n")
            self.note_state()
            hidden.rename(final)
            self._state_path(self.files - 1).unlink(missing_ok=True)
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(final)) from error
        self._lines, self._bytes = [], 0
