"""Reads a spool while it grows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from exchange.instances import spool_file
from exchange.seconds import Once


class GrowingSpool:
    """Each reporter's files appear whole, by rename, and in order: so its next one is asked for by its name."""

    def __init__(self, run_folder: Path, reporters: int = 1) -> None:
        self._folder = run_folder / "spool"
        self._once = Once()
        self._read = dict.fromkeys(range(1, reporters + 1), 0)

    def fresh(self) -> Iterator[dict[str, Any]]:
        """The records that have come since the last call."""
        for reporter in self._read:
            while (path := self._folder / spool_file(self._read[reporter] + 1, reporter)).exists():
                self._read[reporter] += 1
                for line in path.read_bytes().splitlines():
                    if self._once.is_new(line):
                        yield orjson.loads(line)
