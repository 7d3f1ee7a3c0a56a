"""What the papers printed of the figures that a benchmark measures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Published:
    """A value that the paper prints."""

    title: str
    value: str
    level: float | None = None
    """The height of a horizontal line in a plot."""
    level_label: str = "the paper"
    """What stands at the end of that line."""
    points: Sequence[tuple[float, float]] = ()
    """The points of a line in a plot, which is named `title`."""
    figure: str = ""
    """Our figure of the same thing, which the page puts beside the paper's value."""
    where: Mapping[str, Any] = field(default_factory=dict)
    """Our figure is taken only from the points with these values."""
    transport: str = ""
    """Our figure is taken only over this transport; empty for all."""
    ratio_of: tuple[str, str] | None = None
    """The two ways to find a reply whose ratio stands behind our figures, as behind the paper's; None without one."""
    is_peak: bool = False
    """The value is the largest of its points, so ours is the largest, too."""
    is_reciprocal: bool = False
    """The value is the time of a message in us, 1,000,000 over a rate; `figure` is our rate."""
    fits: Callable[[Mapping[str, Any]], bool] | None = None
    """Whether settings are those of the value; without it the value stands beside every measurement."""
    planned: str = ""
    """Our value, if no measurement changes it, in place of `figure`."""
