"""What becomes of a condition: its check at each rate, passed, failed or undecided.

A contender that did not keep its rate has figures all the same. What they say depends on the kind of figure:

- completion times: they grow as long as the run lasts, so they count as longer than any bound (TIMES_OF_LOST_RATES).
- rate: the achieved rate is the figure itself, so it is judged as always.
- CPU: an order costs less or more at another load, so nothing is decided.

docs/gates.md has the same as a table.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from exchange.json_records import Record
from exchange.percentiles import LEAST_ORDERS
from exchange_simulation.gates.conditions import COMPLETION_NAMES, FigureKind, RatioCondition, TimeCondition
from exchange_simulation.gates.judged_bound import JudgedBound
from exchange_simulation.launching.record.noise import is_noisy_share
from exchange_simulation.launching.record.noise_summary import MOST_NOISY
from exchange_simulation.repeats.judging import ComparedPair, ComparedSide, PairVerdict
from exchange_simulation.reports.formats.numbers import three_digits
from exchange_simulation.reports.formats.ratios import interval_in_words, ratio_in_words
from exchange_simulation.reports.gate_outcomes import FAILED, PASSED, UNDECIDED, GateCheck

WORDING = "{larger} is {times} times {smaller}"
TOO_NOISY_TO_SAY = "too noisy to say"
NO_COMMON_RATE = "no rate at which both were measured"


@dataclass(frozen=True)
class LostRateOutcomes:
    """Outcomes of bounds on completion times if a side did not keep its rate."""

    over: str
    under: str


TIMES_OF_LOST_RATES = {
    (False, True): LostRateOutcomes(over=FAILED, under=PASSED),
    (True, False): LostRateOutcomes(over=PASSED, under=FAILED),
    (False, False): LostRateOutcomes(over=UNDECIDED, under=UNDECIDED),
}
"""By (the first side kept its rate, the second side kept its rate). A bound that is a time counts as a kept rate."""


@dataclass(frozen=True)
class RatioRow:
    """A condition at one rate, with the arms of both contenders."""

    condition: RatioCondition
    arm: Record
    other_arm: Record
    pair: ComparedPair
    """The two arms, for the test of all rows together."""


@dataclass(frozen=True)
class TimeRow:
    """A condition at one rate, with the contender's arm."""

    condition: TimeCondition
    arm: Record


@dataclass(frozen=True)
class ComparedFigure:
    """A figure of two sides, and how far they are apart."""

    kind: FigureKind
    pair: ComparedPair
    verdict: PairVerdict
    unit: str
    """What follows their ratio in a sentence. For example: times zeromq's"""


def ratio_rows_of(condition: RatioCondition, record: Record) -> list[RatioRow]:
    """Return a row for each rate at which both contenders were measured."""
    other_arms = {arm["block"]: arm for arm in _arms_of(condition.other_contender, record)}
    rows = []
    for arm in _arms_of(condition.contender, record):
        if arm["block"] in other_arms:
            other_arm = other_arms[arm["block"]]
            metric = condition.metric_in(arm)
            pair = ComparedPair(
                figure=metric,
                wording=WORDING,
                first=side_of(arm, metric, record, condition.kind),
                second=side_of(other_arm, metric, record, condition.kind),
            )
            rows.append(RatioRow(condition, arm, other_arm, pair))
    return rows


def time_rows_of(condition: TimeCondition, record: Record) -> list[TimeRow]:
    """Return a row for each rate of the contender."""
    return [TimeRow(condition, arm) for arm in _arms_of(condition.contender, record)]


def _arms_of(contender: str, record: Record) -> list[Record]:
    """Return the arms of a contender."""
    return [arm for arm in record["arms"] if arm["contender"] == contender]


def side_of(arm: Record, metric: str, record: Record, kind: FigureKind) -> ComparedSide:
    """Return an arm's values by repeat. If the trial kept noisy runs on purpose, none of its repeats is noisy.

    Rates are compared whether or not the arm kept the offered one.
    """
    by_repeat = arm["metrics"].get(metric, {}).get("by_repeat", {})
    noisy_repeats = []
    if record.get("redo_noisy"):
        noisy_repeats = [run["repeat"] for run in arm["runs"] if is_noisy_share(run.get("share_of_all_cpus"))]
    return ComparedSide(
        name=arm["contender"],
        values={int(repeat): float(value) for repeat, value in by_repeat.items()},
        kept_rate=kind is FigureKind.RATE or arm["held"] is not False,
        noisy_repeats=noisy_repeats,
    )


def shortage_of_orders(arms: Iterable[Record], figure: str) -> str:
    """Return a clause if runs of an arm have too few orders for the percentile; empty if all arms have enough."""
    needed = LEAST_ORDERS.get(COMPLETION_NAMES.get(figure, ""), 0)
    for arm in arms:
        measured = arm.get("orders_measured")
        if measured is not None and measured < needed:
            return f"{figure} needs {needed:,} orders, and a run of {arm['contender']} has {measured:,}"
    return ""


def bound_of(condition: RatioCondition | TimeCondition, block: str = "") -> JudgedBound:
    """Return the condition at one rate, in the words of a check."""
    if isinstance(condition, RatioCondition):
        bound = f"{condition.factor:,.10g}"
        unit = _times_the_other(condition)
    else:
        bound = condition.bound_as_typed
        unit = ""
    return JudgedBound(
        condition=condition.words,
        figure=condition.figure_in_words,
        bound=f"{condition.side} {bound}",
        unit_of_bound=unit,
        place=block,
    )


def _times_the_other(condition: RatioCondition) -> str:
    """Return the unit of the condition's ratio. For example: times zeromq's"""
    return f"times {condition.other_contender}'s"


def check_of_ratio(row: RatioRow, verdict: PairVerdict) -> GateCheck:
    """Judge the ratio of two contenders against the condition's factor."""
    condition = row.condition
    bound = bound_of(condition, row.arm["block"])
    too_few = shortage_of_orders((row.arm, row.other_arm), condition.figure)
    if too_few:
        return bound.undecided(too_few)
    compared = ComparedFigure(condition.kind, row.pair, verdict, unit=_times_the_other(condition))
    return check_of_pair(bound, compared, condition.factor, is_over=condition.is_over)


def check_of_pair(bound: JudgedBound, compared: ComparedFigure, factor: float, *, is_over: bool) -> GateCheck:
    """Judge first / second against a factor: passed or failed if the whole interval is within or beyond it."""
    pair = compared.pair
    verdict = compared.verdict
    if not pair.repeats:
        return bound.undecided(verdict.sentence)
    if pair.is_too_noisy:
        return bound.undecided(verdict.sentence if verdict.ratio else TOO_NOISY_TO_SAY)
    if not pair.first.kept_rate or not pair.second.kept_rate:
        reason = _rate_not_kept(pair.first, pair.second)
        if compared.kind is not FigureKind.COMPLETION:
            return bound.undecided(reason)
        return _check_of_lost_rate(bound, reason, (pair.first.kept_rate, pair.second.kept_rate), is_over=is_over)
    ratio = verdict.ratio
    if ratio is None or ratio.low is None or ratio.high is None:
        return bound.undecided(verdict.sentence)
    outcome = _outcome(ratio.low, ratio.high, factor, is_over=is_over)
    return bound.measured(outcome, f"{ratio_in_words(ratio.value)} {compared.unit} {interval_in_words(ratio)}")


def check_of_time(row: TimeRow, record: Record) -> GateCheck:
    """Judge a contender's completion time, the median over repeats, by its interval."""
    condition = row.condition
    bound = bound_of(condition, row.arm["block"])
    too_few = shortage_of_orders([row.arm], condition.figure)
    if too_few:
        return bound.undecided(too_few)
    metric = condition.metric_in(row.arm)
    estimate = row.arm["metrics"].get(metric)
    if not estimate:
        return bound.undecided("it was not measured")
    side = side_of(row.arm, metric, record, condition.kind)
    if side.noisy_among(side.values) > MOST_NOISY * len(side.values):
        return bound.undecided(TOO_NOISY_TO_SAY)
    if not side.kept_rate:
        return _check_of_lost_rate(bound, _rate_not_kept(side), (False, True), is_over=condition.is_over)
    low = estimate["low"]
    high = estimate["high"]
    if low is None or high is None:
        return bound.undecided("1 repeat has no interval")
    outcome = _outcome(low, high, condition.bound_us, is_over=condition.is_over)
    interval = f"({three_digits(low)}..{three_digits(high)})"
    return bound.measured(outcome, f"{three_digits(estimate['median'])} us {interval}")


def _check_of_lost_rate(bound: JudgedBound, reason: str, kept_rates: tuple[bool, bool], *, is_over: bool) -> GateCheck:
    """Return the check of completion times of which a side did not keep its rate."""
    outcomes = TIMES_OF_LOST_RATES[kept_rates]
    outcome = outcomes.over if is_over else outcomes.under
    if outcome == UNDECIDED:
        return bound.undecided(reason)
    return bound.assumed(outcome, reason)


def _rate_not_kept(*sides: ComparedSide) -> str:
    """Return the sentence on the sides that did not keep their rate. For example: amqp did not keep its rate"""
    names = [side.name for side in sides if not side.kept_rate]
    if len(names) == 1:
        return f"{names[0]} did not keep its rate"
    return f"{' and '.join(names)} did not keep their rate"


def _outcome(low: float, high: float, bound: float, *, is_over: bool) -> str:
    """Return FAILED or PASSED if the whole interval says so, else UNDECIDED."""
    if is_over:
        is_failed = low > bound
        is_passed = high <= bound
    else:
        is_failed = high < bound
        is_passed = low >= bound
    if is_failed:
        return FAILED
    return PASSED if is_passed else UNDECIDED
