"""Writes the spool: JSON lines in files that appear whole."""

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
    """Collects lines: a file FILE_SECONDS after the first of them, or at FILE_BYTES. OSError where the disk refuses.

    A file is written under a name that begins with a dot, then renamed, so readers find whole files only.
    """

    def __init__(self, folder: Path, clock: Callable[[], float] = time.monotonic, instance: int = 1) -> None:
        """`clock` returns seconds; `instance` is the number of the reporter, whose files bear it."""
        self._folder = folder
        self._clock = clock
        self._instance = instance
        self._lines: list[bytes] = []
        self._bytes = 0
        self._opened_s = clock()
        """When the first of these lines came."""
        self.files = 0
        """Files so far."""
        folder.mkdir(parents=True, exist_ok=True)

    def write(self, line: bytes) -> None:
        """Take a line, without its end."""
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
            self._show(hidden, final)
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(final)) from error
        self._lines = []
        self._bytes = 0

    def _show(self, hidden: Path, final: Path) -> None:
        hidden.rename(final)

    def _path(self, number: int) -> Path:
        return self._folder / spool_file(number, self._instance)
