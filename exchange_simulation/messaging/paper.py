"""What the papers printed, and which of their figures, tables and experiments a benchmark makes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Published:
    """A value that the paper prints."""

    title: str
    value: str
    level: float | None = None
    """The height of a horizontal line in a plot."""
    points: Sequence[tuple[float, float]] = ()
    """The points of a line in a plot, which is named `title`."""
    figure: str = ""
    """Our figure of the same thing, which the page puts beside the paper's value."""
    where: Mapping[str, Any] = field(default_factory=dict)
    """Our figure is taken only from the points with these values."""


@dataclass(frozen=True)
class ReproducedItem:
    """A figure, table or experiment of the paper that a benchmark makes."""

    item: str
    """The paper's name for it, as "figure 4a"."""
    title: str
    options: str
    """The options after `exchange bench NAME` that make it."""
    differences: str = ""
    """Differences from the paper."""


def emulated_gige_item(item: str, title: str, options: str) -> ReproducedItem:
    """An item with a curve for 1 Gigabit Ethernet, which `--network gige` emulates.

    Its curves for InfiniBand cannot be repeated; `--network local` is measured in their place.
    """
    differences = "its 1 GigE, emulated; its IPoIB and SDP take InfiniBand: --network local stands in"
    return ReproducedItem(item, title, f"--transport amqp --network gige {options}", differences)
