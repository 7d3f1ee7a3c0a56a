"""The instruments of a run: numbers from 0 on. An order without an instrument on the wire is of instrument 0."""

from __future__ import annotations

MAX_INSTRUMENTS = 10_000
"""The most instruments of a run."""


def engine_of(instrument: int, engines: int) -> int:
    """Return the engine, counted from 1, that serves an instrument: neighbours are served by different engines."""
    return 1 + instrument % engines
