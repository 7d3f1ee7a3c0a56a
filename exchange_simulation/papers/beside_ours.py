"""A value that a paper prints, beside ours."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class BesideOurs:
    """A value that the paper prints, and ours of the same thing; empty if we have none."""

    title: str
    paper: str
    ours: str
