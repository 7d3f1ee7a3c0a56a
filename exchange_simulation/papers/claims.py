"""A paper's sentences as claims: each can come out as holding here, as not holding, or as untold.

A claim is about a statistic, which is a ratio above zero, measured once in each repeat: for example, the rate with
1,024 patterns over the rate with one. The paper's sentence says where that ratio lies: here, below 1. All claims of a
paper are one family, tested by the sign flips of repeats/sign_flips.py. A claim holds if the whole interval of its
ratio lies where the sentence says; it does not hold if no part of the interval does; otherwise nothing can be told.
A claim decides nothing if a side of its ratio is too noisy, by the rule of launching/record/noise_summary.py.

With too few repeats for an interval nothing can be told, either. What was seen then lies where the sentence says, or
not, and that is recorded beside.

A claim by construction is about counts that our plan gives, with nothing left to chance. It needs no interval: it holds
if every repeat lies where the sentence says.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import exp, inf, log, nan
from statistics import median
from typing import NamedTuple

from exchange.json_records import Record
from exchange.words import counted
from exchange_simulation.launching.record.noise import MOST_SHARE
from exchange_simulation.launching.record.noise_summary import TOO_NOISY, NoiseSummary
from exchange_simulation.papers.readings import ByRepeat, FigureReading
from exchange_simulation.repeats.judging import ALPHA
from exchange_simulation.repeats.sign_flips import estimate_together, repeats_needed
from exchange_simulation.reports.formats.numbers import number_text

HOLDS = "holds"
DOES_NOT_HOLD = "does not hold"
CANNOT_TELL = "cannot tell"
NOT_MEASURED = "not measured"
"""Why a claim cannot be told whose part was not measured."""
OUTCOMES = (DOES_NOT_HOLD, HOLDS, CANNOT_TELL, TOO_NOISY)
"""In the order in which a reader wants them: what contradicts the paper comes first."""
SEED = 1
LEAST_STRAIGHT = 0.9
MOST_STRAIGHT = 1.1
"""A curve is straight if its middle is within a tenth of the line between its ends."""

PartRecords = Mapping[str, Record]
"""The records of a paper's parts, by part; a part that was not measured is missing."""


@dataclass(frozen=True)
class Statistic:
    """A ratio above zero that a measurement gives once in each repeat."""

    words: str
    """What is divided by what. For example: messages/s with 1,024 patterns over that with 1."""
    read: Callable[[PartRecords], FigureReading]
    """Reads the ratio from the parts' records; empty if a part or a cell was not measured."""


@dataclass(frozen=True)
class Claim:
    """A sentence of a paper, in our words, with the ratios that it allows.

    ValueError if every ratio is allowed, or none, or if the statistic's words do not name the network.
    """

    place: str
    """Where the paper says it: a section, figure or table."""
    sentence: str
    statistic: Statistic
    at_least: float | None = None
    at_most: float | None = None
    of_hardware: bool = False
    """The sentence is about the paper's hardware: where it does not hold, it says nothing against the paper."""
    network: str = ""
    """The network that the sentence is tested on; empty for loopback, or for the one network that was measured."""
    by_construction: bool = False
    """Our plan was made from what the sentence says, so the claim tests that the plan was delivered."""

    def __post_init__(self) -> None:
        if self.least <= 0 and self.most == inf:
            raise ValueError(f"{self.sentence!r} can never fail: give at_least, at_most, or both")
        if self.least > self.most or self.most <= 0:
            raise ValueError(f"{self.sentence!r} can never hold: at_most has to be above 0 and no less than at_least")
        if self.network not in self.statistic.words:
            raise ValueError(f"{self.statistic.words!r} does not name the network {self.network}")

    @property
    def least(self) -> float:
        """The least ratio that the sentence allows."""
        return 0.0 if self.at_least is None else self.at_least

    @property
    def most(self) -> float:
        """The largest ratio that the sentence allows."""
        return inf if self.at_most is None else self.at_most

    @property
    def expectation(self) -> str:
        """What would be seen. For example: at most 1; 0.8 to 1.25."""
        if self.at_least is None:
            return f"at most {number_text(self.most)}"
        if self.at_most is None:
            return f"at least {number_text(self.least)}"
        return f"{number_text(self.least)} to {number_text(self.most)}"


@dataclass(frozen=True)
class TestedClaim:
    """A claim with what was seen."""

    claim: Claim
    outcome: str
    """One of OUTCOMES."""
    why: str = ""
    """Why nothing can be told; empty otherwise."""
    ratio: float | None = None
    low: float | None = None
    """The end of the ratio's interval; of a claim by construction the least of several repeats."""
    high: float | None = None
    repeats: int = 0
    as_expected: bool | None = None
    """Whether the ratio lies where the sentence says, if its repeats are too few for a verdict; None otherwise."""


class Interval(NamedTuple):
    """A ratio with the ends of its interval."""

    ratio: float
    low: float
    high: float


def judge_claims(claims: Sequence[Claim], records: PartRecords) -> list[TestedClaim]:
    """Test all claims of a paper together: the chance of any false outcome among them is at most ALPHA.

    Claims by construction are counted out, since chance has no part in them.
    """
    readings = [claim.statistic.read(records) for claim in claims]
    together = {
        claim.statistic.words: reading.values
        for claim, reading in zip(claims, readings, strict=True)
        if not claim.by_construction and len(reading.values) >= repeats_needed(ALPHA)
    }
    intervals = _intervals(together)
    return [
        _judged(claim, reading, intervals.get(claim.statistic.words))
        for claim, reading in zip(claims, readings, strict=True)
    ]


def _judged(claim: Claim, reading: FigureReading, interval: Interval | None) -> TestedClaim:
    """Judge a claim by what was read; `interval` is None if chance has no part in it, or its repeats are too few."""
    by_repeat = reading.values
    if not by_repeat:
        return TestedClaim(claim, CANNOT_TELL, reading.missing or NOT_MEASURED)
    if claim.by_construction:
        return _delivered(claim, by_repeat)
    if reading.noisiest is not None:
        why = _why_too_noisy(by_repeat, reading.noisiest)
        return TestedClaim(claim, TOO_NOISY, why, repeats=len(by_repeat))
    if interval is None:
        why = f"{counted(len(by_repeat), 'repeats')}, and a verdict needs {repeats_needed(ALPHA)}"
        ratio = _middle(by_repeat)
        as_expected = claim.least <= ratio <= claim.most
        return TestedClaim(claim, CANNOT_TELL, why, ratio, repeats=len(by_repeat), as_expected=as_expected)
    outcome = _outcome(claim, interval)
    return TestedClaim(claim, outcome, _why(outcome), *interval, repeats=len(by_repeat))


def _delivered(claim: Claim, by_repeat: ByRepeat) -> TestedClaim:
    """Judge a claim by construction: each repeat alone says whether the plan was delivered."""
    lowest = min(by_repeat.values())
    highest = max(by_repeat.values())
    outcome = HOLDS if claim.least <= lowest and highest <= claim.most else DOES_NOT_HOLD
    if len(by_repeat) == 1:
        return TestedClaim(claim, outcome, ratio=lowest, repeats=1)
    return TestedClaim(claim, outcome, "", _middle(by_repeat), lowest, highest, len(by_repeat))


def _intervals(values_by_words: Mapping[str, ByRepeat]) -> dict[str, Interval]:
    """Return the ratio of each statistic with its interval, by the statistic's words."""
    if not values_by_words:
        return {}
    repeats = sorted({repeat for by_repeat in values_by_words.values() for repeat in by_repeat})
    rows = [
        [log(by_repeat[repeat]) if repeat in by_repeat else nan for repeat in repeats]
        for by_repeat in values_by_words.values()
    ]
    log_ratios = estimate_together(rows, list(values_by_words), ALPHA, SEED)
    return {
        words: Interval(
            exp(log_ratio.estimate),
            exp(log_ratio.estimate - log_ratio.half_width),
            exp(log_ratio.estimate + log_ratio.half_width),
        )
        for words, log_ratio in zip(values_by_words, log_ratios, strict=True)
    }


def _outcome(claim: Claim, interval: Interval) -> str:
    if claim.least <= interval.low and interval.high <= claim.most:
        return HOLDS
    if interval.high < claim.least or claim.most < interval.low:
        return DOES_NOT_HOLD
    return CANNOT_TELL


def _why(outcome: str) -> str:
    return "the interval reaches over the bound" if outcome == CANNOT_TELL else ""


def _why_too_noisy(by_repeat: ByRepeat, noise: NoiseSummary) -> str:
    """Why a claim decides nothing that noise disturbed: the range of its repeats stands in place of a ratio.

    For example: 0.95 to 1.1, while others took more than 5% of all processors beside 4 of 6 measurements
    """
    lowest = number_text(min(by_repeat.values()))
    highest = number_text(max(by_repeat.values()))
    seen = lowest if lowest == highest else f"{lowest} to {highest}"
    beside = f"{noise.noisy} of {counted(noise.measurements, 'measurements')}"
    return f"{seen}, while others took more than {MOST_SHARE:.0%} of all processors beside {beside}"


def _middle(by_repeat: ByRepeat) -> float:
    """The median over too few repeats for an interval, of logarithms, as every ratio here is estimated."""
    return exp(median(log(value) for value in by_repeat.values()))


def claim_as_dict(tested: TestedClaim) -> Record:
    """A claim's entry in the record of a paper."""
    claim = tested.claim
    return {
        "place": claim.place,
        "sentence": claim.sentence,
        "statistic": claim.statistic.words,
        "expected": claim.expectation,
        "of_hardware": claim.of_hardware,
        "network": claim.network,
        "by_construction": claim.by_construction,
        "outcome": tested.outcome,
        "why": tested.why,
        "ratio": tested.ratio,
        "low": tested.low,
        "high": tested.high,
        "repeats": tested.repeats,
        "as_expected": tested.as_expected,
    }
