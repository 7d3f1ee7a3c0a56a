"""How a benchmark's figures are shown: the columns of its table, and the plots of its page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from exchange_simulation.messaging.paper import Published


@dataclass(frozen=True)
class Column:
    """A column of the table: a figure under a title."""

    name: str
    title: str
    with_interval: bool = False
    exact: bool = False
    """Print every digit, in the terminal, too."""


@dataclass(frozen=True)
class Plot:
    """A plot of the page: `figure` against the point's value `x`, with a line for each transport.

    If points differ in more than x, each combination of the other values has a line of its own. Axes are logarithmic.
    """

    title: str
    figure: str
    unit: str
    x: str = "size_bytes"
    x_unit: str = ""
    """By default the last word of x."""
    caption: str = ""
    linear: bool = False
    """Both axes are linear, from zero."""
    separate: bool = False
    """The values of x are names, so its points are not joined by a line."""
    log_y: bool = False
    """The figure's axis is logarithmic even if `linear` is set."""
    where: Mapping[str, Any] = field(default_factory=dict)
    """Only points with these values are drawn."""
    published: Sequence[Published] = ()
    """The paper's values, drawn as levels or as lines of other hardware."""
    series: Mapping[str, str] = field(default_factory=dict)
    """Names of lines by figure, for a plot that draws several figures; `figure` is then the name of all of them."""
