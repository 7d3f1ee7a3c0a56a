"""How long the measurements of a capacity search take."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class SearchTimes:
    """The times for which the measurements of a search offer load, without the start and the end of each."""

    shortest_probe_s: float
    longest_probe_s: float
    longest_ceiling_s: float
    """0 if the ceiling is computed, and not measured."""
