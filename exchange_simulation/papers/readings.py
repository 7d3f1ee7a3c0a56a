"""A figure that was read from a paper's measurement: its value in each repeat, and how noisy the machine was then."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from exchange_simulation.launching.record.noise_summary import NoiseSummary

ByRepeat = Mapping[int, float]
"""A figure's value in each repeat that measured it."""


@dataclass(frozen=True)
class FigureReading:
    values: ByRepeat
    noise: Sequence[NoiseSummary] = ()
    """The noise behind each side of the figure, as the side below and the side above a fraction; none for a number
    that the paper prints, and none if noisy measurements are meant to count."""

    missing: str = ""
    """Why there are no values although the part was measured; empty if there are some, or if it was not measured."""

    @property
    def noisiest(self) -> NoiseSummary | None:
        """The side with the largest share of noisy measurements, if any side is noisy."""
        noisy_sides = [side for side in self.noise if side.is_noisy]
        return max(noisy_sides, key=lambda side: side.noisy / side.measurements, default=None)


NOTHING = FigureReading({})
"""The reading of a figure that was not measured."""
