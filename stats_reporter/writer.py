"""Writes the spool, JSON lines for Spark: each file under a dot-name first, then renamed, so it appears whole."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from pathlib import Path

from exchange.instances import spool_file

FILE_SECONDS = 0.7
"""Less than a second: a reader that looks every second finds the previous one."""
FILE_BYTES = 1 << 22


class SpoolWriter:
    """Collects lines: a file FILE_SECONDS after the first of them, or at FILE_BYTES. OSError where the disk refuses."""

    def __init__(self, folder: Path, clock: Callable[[], float] = time.monotonic, instance: int = 1) -> None:
        self._folder, self._clock = folder, clock
        self._instance = instance
        self._lines: list[bytes] = []
        self._bytes = 0
        self._opened_s = clock()
        self.files = 0
        folder.mkdir(parents=True, exist_ok=True)

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
        final = self._folder / spool_file(self.files, self._instance)
        hidden = self._folder / f".{final.name}.part"
        try:
            hidden.write_bytes(b"\n".join(self._lines) + b"\n")
            hidden.rename(final)
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(final)) from error
        self._lines, self._bytes = [], 0
