"""Reads a spool while it grows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson


class GrowingSpool:
    """Its files appear whole, by rename, and in order: so the next one is asked for by its name."""

    def __init__(self, run_folder: Path) -> None:
        self._folder = run_folder / "spool"
        self._read = 0

    def fresh(self) -> Iterator[dict[str, Any]]:
        """The records that have come since the last call."""
        while (path := self._folder / f"{self._read + 1:06}.jsonl").exists():
            self._read += 1
            for line in path.read_bytes().splitlines():
                yield orjson.loads(line)
