"""The noise behind a result: how many of its measurements were noisy.

Runs, trials, searches for a capacity and benchmarks all use this summary, so that "noisy" has one meaning everywhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from exchange.words import counted
from exchange_simulation.launching.record.noise import MOST_SHARE, is_noisy_share, noise_share, share_words

MOST_NOISY = 0.5
"""A result is too noisy if a larger share of its measurements was noisy."""
NOISE_SUMMARY = "noise_summary"
"""The field of comparison.json and of paper.json with a summary. Other records hold the noise of each measurement."""


@dataclass(frozen=True, kw_only=True)
class NoiseSummary:
    """How many measurements of a result were noisy. A run is one measurement."""

    measurements: int
    """The measurements that count."""
    noisy: int
    """Measurements during which others took more than 5 % of all processors."""
    unknown: int
    """Measurements whose noise is unknown."""
    largest_share: float | None
    """The largest share of all processors that others took during a measurement; None if none is known."""

    @classmethod
    def of_shares(cls, shares: Iterable[float | None]) -> NoiseSummary:
        """Return the summary of measurements with these shares of noise."""
        all_shares = list(shares)
        known = [share for share in all_shares if share is not None]
        return cls(
            measurements=len(all_shares),
            noisy=sum(is_noisy_share(share) for share in known),
            unknown=len(all_shares) - len(known),
            largest_share=max(known, default=None),
        )

    @classmethod
    def together(cls, summaries: Iterable[NoiseSummary]) -> NoiseSummary:
        """Return the summary of all measurements of these summaries."""
        parts = list(summaries)
        shares = [part.largest_share for part in parts if part.largest_share is not None]
        return cls(
            measurements=sum(part.measurements for part in parts),
            noisy=sum(part.noisy for part in parts),
            unknown=sum(part.unknown for part in parts),
            largest_share=max(shares, default=None),
        )

    @property
    def is_noisy(self) -> bool:
        """True if more than half of the measurements were noisy: then the result says little about its subject."""
        return self.noisy > MOST_NOISY * self.measurements

    def banner(self, plural: str) -> str:
        """Return the warning above a noisy result; empty if the result is not noisy. `plural` names its measurements.

        For example: the machine: others took more than 5% of all processors beside 30 of 30 measurements, at most 92%,
        which shows in the figures
        """
        if not self.is_noisy or self.largest_share is None:
            return ""
        largest = share_words(self.largest_share)
        if self.measurements == 1:
            return f"the machine: others took {largest} of all processors, which shows in the figures"
        noisy = f"{self.noisy} of {counted(self.measurements, plural)}"
        limit = f"more than {MOST_SHARE:.0%} of all processors"
        return f"the machine: others took {limit} beside {noisy}, at most {largest}, which shows in the figures"

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def noise_of(record: Mapping[str, Any]) -> NoiseSummary:
    """Return the noise behind the record of a run, a trial, a search for a capacity, a benchmark, a suite or a paper.

    The comparison.json or paper.json of an older version has no summary: then no measurement is known.
    """
    if NOISE_SUMMARY in record:
        return NoiseSummary(**record[NOISE_SUMMARY])
    if "probes" in record:
        return NoiseSummary.of_shares(probe.get("noise_share") for probe in record["probes"])
    if "rows" in record:
        parts = record.get("parts", [record])
        repeats = [repeat for part in parts for row in part["rows"] for repeat in row["repeats"]]
        return NoiseSummary.of_shares(noise_share(repeat) for repeat in repeats)
    if "arms" in record or "claims" in record:
        return NoiseSummary.of_shares([])
    return NoiseSummary.of_shares([noise_share(record)])
