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
TOO_NOISY = "too noisy"
"""The outcome of a verdict, or of a paper's claim, whose measurements were too noisy."""
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

    def sentence(self, plural: str) -> str:
        """Return how noisy the measurements were; empty if none was noisy. `plural` names them.

        For example: the machine: others took more than 5% of all processors beside 30 of 30 measurements, at most 92%,
        which shows in the figures
        """
        if not self.noisy or self.largest_share is None:
            return ""
        largest = share_words(self.largest_share)
        if self.measurements == 1:
            return f"the machine: others took {largest} of all processors, which shows in the figures"
        noisy = f"{self.noisy} of {counted(self.measurements, plural)}"
        limit = f"more than {MOST_SHARE:.0%} of all processors"
        return f"the machine: others took {limit} beside {noisy}, at most {largest}, which shows in the figures"

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def noise_banner(record: Mapping[str, Any], plural: str) -> str:
    """Return the warning above a noisy result, and what to do if it is too noisy to say; empty if it is not noisy.

    `plural` names the measurements. One run, which has no verdict, is never too noisy to say. With --keep-noisy,
    verdicts are given. A paper has no such option: it is measured by its own rules.

    For example: the machine: others took more than 5% of all processors beside 12 of 12 runs, at most 93%, which shows
    in the figures: measure again on a quiet machine, or with --keep-noisy if this machine is the one you ask about
    """
    noise = noise_of(record)
    is_paper = "claims" in record
    judged = record["claims"] if is_paper else record.get("verdicts", ())
    is_any_too_noisy = any(entry["outcome"] == TOO_NOISY for entry in judged)
    if not noise.is_noisy and not is_any_too_noisy:
        return ""
    clauses = [noise.sentence(plural)]
    if is_paper:
        if is_any_too_noisy:
            clauses.append("measure again on a quiet machine")
    elif is_any_too_noisy or _makes_noisy_ones_again(record):
        clauses.append(
            "measure again on a quiet machine, or with --keep-noisy if this machine is the one you ask about"
        )
    return ": ".join(clause for clause in clauses if clause)


def _makes_noisy_ones_again(record: Mapping[str, Any]) -> bool:
    """Return whether the record was measured without --keep-noisy, so that noise decides nothing."""
    return any(part.get("redo_noisy") for part in record.get("parts", [record]))


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
