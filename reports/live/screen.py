"""Where a run draws: a terminal that is closed in the middle takes no run with it."""

from __future__ import annotations

import contextlib
import sys
from typing import IO, Any, cast

from rich.console import Console


def screen(file: IO[str] | None = None) -> Console:
    """stderr, unless told otherwise."""
    return Console(file=cast(IO[str], Lasting(file or sys.stderr)), highlight=False)


class Lasting:
    """A file to which one writes as long as somebody is there."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file

    def write(self, text: str) -> None:
        with contextlib.suppress(OSError):
            self._file.write(text)

    def flush(self) -> None:
        with contextlib.suppress(OSError):
            self._file.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)
