"""A value that a paper prints, beside ours."""

from __future__ import annotations

from dataclasses import dataclass

NOT_PRINTED = "not printed"
"""Stands in place of a value that the paper does not print, beside ours."""


@dataclass(frozen=True)
class BesideOurs:
    """A value that the paper prints, and ours of the same thing; empty if we have none."""

    title: str
    paper: str
    ours: str
    of_points: bool = False
    """True if ours goes from the lowest to the highest of all points that were measured, as 1..2."""
