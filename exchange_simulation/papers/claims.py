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
    """A sentence of a paper, in our words, with the ratios that it allows."""

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

    @property
    def expectation(self) -> str:
        """What would be seen. For example: at most 1; 0.8 to 1.25."""
        if self.at_least is None:
            return f"at most {number_text(self.at_most or 0.0)}"
        if self.at_most is None:
            return f"at least {number_text(self.at_least)}"
        return f"{number_text(self.at_least)} to {number_text(self.at_most)}"


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


def judge_claims(claims: Sequence[Claim], records: PartRecords) -> list[TestedClaim]:
    """Test all claims of a paper together: the chance of any false outcome among them is at most ALPHA.

    Claims by construction are counted out, since chance has no part in them.
    """
    readings = [claim.statistic.read(records) for claim in claims]
    values = [reading.values for reading in readings]
    needed = repeats_needed(ALPHA)
    places = [
        place
        for place, by_repeat in enumerate(values)
        if len(by_repeat) >= needed and not claims[place].by_construction
    ]
    intervals = dict(zip(places, _intervals([claims[place] for place in places], values, places), strict=True))
    tested: list[TestedClaim] = []
    for place, claim in enumerate(claims):
        by_repeat = values[place]
        noise = readings[place].noisiest
        if not by_repeat:
            tested.append(TestedClaim(claim, CANNOT_TELL, readings[place].missing or NOT_MEASURED))
        elif claim.by_construction:
            tested.append(_delivered(claim, by_repeat))
        elif noise is not None:
            tested.append(TestedClaim(claim, TOO_NOISY, _why_too_noisy(by_repeat, noise), repeats=len(by_repeat)))
        elif place in intervals:
            ratio, low, high = intervals[place]
            outcome = _outcome(claim, low, high)
            tested.append(TestedClaim(claim, outcome, _why(outcome), ratio, low, high, len(by_repeat)))
        else:
            why = f"{counted(len(by_repeat), 'repeats')}, and a verdict needs {needed}"
            ratio = _middle(by_repeat)
            as_expected = _least(claim) <= ratio <= _most(claim)
            tested.append(TestedClaim(claim, CANNOT_TELL, why, ratio, repeats=len(by_repeat), as_expected=as_expected))
    return tested


def _delivered(claim: Claim, by_repeat: ByRepeat) -> TestedClaim:
    """Judge a claim by construction: each repeat alone says whether the plan was delivered."""
    lowest = min(by_repeat.values())
    highest = max(by_repeat.values())
    outcome = HOLDS if _least(claim) <= lowest and highest <= _most(claim) else DOES_NOT_HOLD
    if len(by_repeat) == 1:
        return TestedClaim(claim, outcome, ratio=lowest, repeats=1)
    return TestedClaim(claim, outcome, "", _middle(by_repeat), lowest, highest, len(by_repeat))


def _intervals(
    claims: Sequence[Claim], values: Sequence[ByRepeat], places: Sequence[int]
) -> list[tuple[float, float, float]]:
    """Return (ratio, low, high) of each claim at `places`."""
    if not places:
        return []
    repeats = sorted({repeat for place in places for repeat in values[place]})
    rows = []
    for place in places:
        by_repeat = values[place]
        rows.append([log(by_repeat[repeat]) if repeat in by_repeat else nan for repeat in repeats])
    log_ratios = estimate_together(rows, [claim.statistic.words for claim in claims], ALPHA, SEED)
    return [
        (
            exp(log_ratio.estimate),
            exp(log_ratio.estimate - log_ratio.half_width),
            exp(log_ratio.estimate + log_ratio.half_width),
        )
        for log_ratio in log_ratios
    ]


def _outcome(claim: Claim, low: float, high: float) -> str:
    if _least(claim) <= low and high <= _most(claim):
        return HOLDS
    if high < _least(claim) or _most(claim) < low:
        return DOES_NOT_HOLD
    return CANNOT_TELL


def _least(claim: Claim) -> float:
    """The least ratio that the sentence allows."""
    return 0.0 if claim.at_least is None else claim.at_least


def _most(claim: Claim) -> float:
    """The largest ratio that the sentence allows."""
    return inf if claim.at_most is None else claim.at_most


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
