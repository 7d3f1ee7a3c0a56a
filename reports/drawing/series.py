"""What the figures over time have in common: lines over the run's seconds, of not too many points.

A value of NaN is a second in which nothing was measured: a gap in the line, never a zero.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from reports.formats import is_number
from reports.run.run_folder import RunFolder, Spool

Floats = npt.NDArray[np.float64]
MAX_POINTS = 500  # of a line; a longer run gets several seconds a point


@dataclass(frozen=True)
class Line:
    """A line of a figure: x in seconds since the first order, or in nines; y in the figure's unit."""

    x: Floats
    y: Floats


def level(y: float) -> Line:
    """One number for the whole run, so at no x."""
    return Line(np.array([np.nan]), np.array([y]))


def is_level(line: Line) -> bool:
    return bool(np.isnan(line.x).all())


def line_where_measured(x: Floats, y: Floats) -> Line | None:
    """A line has at least one value."""
    return Line(x, y) if np.isfinite(y).any() else None


def seconds_begun(spool: Spool) -> int:
    """How many seconds the run reached into."""
    per_second = [*spool["completion"], *spool["traffic"], *spool["process"]]
    return 1 + max((int(record["payload"]["second"]) for record in per_second), default=-1)


def seconds_per_point(spool: Spool, most: int = MAX_POINTS) -> int:
    """1, unless the run is so long that a page of single seconds would grow large."""
    return 1 + seconds_begun(spool) // most


def length_s(folder: RunFolder) -> float:
    """From the first order to the last answer; of a run that did not come so far, the seconds it began."""
    duration_s = folder.run.get("duration_s")
    return duration_s if is_number(duration_s) else seconds_begun(folder.spool)


def middles_s(points: int, point_s: int) -> Floats:
    """Where the points of a line stand: in the middle of their seconds."""
    return np.asarray((np.arange(points) + 0.5) * point_s, np.float64)
