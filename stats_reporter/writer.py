"""Writes the spool: JSON lines in files that appear whole."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from pathlib import Path

from exchange.instances import spool_file

FILE_SECONDS = 0.7
"""Shorter than a second, so that a reader that looks once a second always finds the file of the last second."""
FILE_BYTES = 1 << 22
EARLY_S = 0.001
"""A sleep may end a little early: lines are published this long before their time, in place of one more sleep."""


class SpoolWriter:
    """Collects lines, and publishes them as one file.

    It does so FILE_SECONDS after the first line, or once the lines reach FILE_BYTES. A file is written under a name
    that begins with a dot and then renamed, so readers find whole files only. OSError if the disk refuses.
    """

    def __init__(self, folder: Path, clock: Callable[[], float] = time.monotonic, instance: int = 1) -> None:
        """`clock` returns seconds. `instance` is the number of the reporter, and part of the files' names."""
        self._folder = folder
        self._clock = clock
        self._instance = instance
        self._lines: list[bytes] = []
        self._bytes = 0
        self._opened_s = clock()
        """When the first of the lines came."""
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
    def seconds_until_publish(self) -> float:
        """The time until `roll` will publish the lines; infinite if there are none."""
        if not self._lines:
            return math.inf
        return max(self._opened_s + FILE_SECONDS - self._clock(), 0.0)

    def roll(self) -> None:
        """Publish the lines, if it is time."""
        if self._bytes >= FILE_BYTES or self.seconds_until_publish < EARLY_S:
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
            self._publish_file(hidden, final)
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(final)) from error
        self._lines = []
        self._bytes = 0

    def _publish_file(self, hidden: Path, final: Path) -> None:
        """Give a written file its final name. `recovering/spool.py` overrides this."""
        hidden.rename(final)

    def _path(self, number: int) -> Path:
        return self._folder / spool_file(number, self._instance)
