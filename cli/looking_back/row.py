"""A line of the list: what is told of a folder whose record can be read, and of one whose cannot."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from runs.record.reading import Unusable


@dataclass(frozen=True, kw_only=True)
class Row:
    """Null or empty is what is not known, or what such a folder does not have."""

    name: str
    what: str
    """`run`, or the command that made the trial."""
    status: str
    reason: str | None = None
    """Why its record cannot be read."""
    started_at: str | None = None
    last_written_at: str | None = None
    """Of one whose record cannot be read: it tells whether it goes on."""
    transports: tuple[str, ...] = ()
    orders_per_s: tuple[float | None, ...] = ()
    """Offered; null is as fast as it goes."""
    p50_us: float | None = None
    """Completion from due, as p99_us."""
    p99_us: float | None = None
    repeats: int | None = None
    runs: int | None = None
    """Of a trial: those that count."""
    planned_runs: int | None = None
    told: str | None = None
    """What there is to tell, where all this does not apply."""


def unusable_row(folder: Path, what: str, error: Unusable) -> Row:
    written_at = last_written_at(folder)
    return Row(name=folder.name, what=what, status=error.status, reason=error.reason, last_written_at=written_at)


def last_written_at(folder: Path) -> str | None:
    """When something was last put into it, or into a folder in it; None where it was taken away meanwhile."""
    try:
        newest_s = max(path.stat().st_mtime for path in (folder, *folder.iterdir()))
    except OSError:
        return None
    return datetime.fromtimestamp(newest_s).astimezone().isoformat(timespec="seconds")
