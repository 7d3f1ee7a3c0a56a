"""`--fail-if` of a comparison: conditions under which it fails, as "p99 of amqp over 2x zeromq"."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import InvalidOperation

from exchange.allowed import meant
from exchange.json_records import Record
from exchange.percentiles import FIGURES, LEAST_ORDERS
from exchange.quantities import microseconds_of
from exchange_simulation.gates.checks import HELD, MISSED, UNDECIDED, GateCheck
from exchange_simulation.launching.errors import UserError
from exchange_simulation.launching.record.noise import is_noisy_share
from exchange_simulation.repeats.judging import ComparedPair, ComparedSide, PairVerdict
from exchange_simulation.reports.formats.numbers import three_digits
from exchange_simulation.reports.formats.ratios import interval_in_words, ratio_in_words

SYNTAX = "FIGURE of NAME over FACTORx NAME, or over TIME, as 'p99 of amqp over 2x zeromq' or 'p50 of tcp over 1ms'"
WORDING = "{larger} is {times} times {smaller}"
CONDITION = re.compile(r"(?P<figure>\S+) +of +(?P<side>.+?) +(?P<word>over|under) +(?P<bound>.+)")
RATIO = re.compile(r"(?P<factor>[0-9]*\.?[0-9]+)x +(?P<other>.+)")
COMPLETION = {label: name for name, label in FIGURES.items()}
OTHER_FIGURES = {"cpu": "cpu_s_per_million", "rate": "orders_per_s"}
"""Metrics that are no completion times, by the word of a condition."""
OVER = "over"


@dataclass(frozen=True, kw_only=True)
class FailureCondition:
    """A figure of one contender, and a bound: a multiple of another contender's figure, or a time."""

    words: str
    figure: str
    """A figure of completion times, as p99, or cpu or rate."""
    side: str
    is_over: bool
    """True if the comparison fails above the bound, False if it fails below."""
    factor: float | None = None
    other: str | None = None
    bound_us: float | None = None

    def metric_in(self, arm: Record) -> str:
        """Return the metric of an arm; of completion times, from due, or from handing over if no order was due."""
        if self.figure in OTHER_FIGURES:
            return OTHER_FIGURES[self.figure]
        name = COMPLETION[self.figure]
        from_due = f"due_{name}_us"
        return from_due if from_due in arm["metrics"] else f"handed_over_{name}_us"


def condition_of(text: str, contenders: Sequence[str]) -> FailureCondition:
    """Return the condition that the text describes. UserError names the part that is not understood."""
    written = CONDITION.fullmatch(text.strip())
    if written is None:
        raise UserError(f"--fail-if is {text!r}; it takes {SYNTAX}")
    figure = written["figure"].lower()
    known = [*COMPLETION, *OTHER_FIGURES]
    if figure not in known:
        raise UserError(f"--fail-if is {text!r}: {figure!r} is no figure; there are {', '.join(known)}")
    is_over = written["word"] == OVER
    side = _contender(written["side"], contenders, text)
    ratio = RATIO.fullmatch(written["bound"])
    if ratio:
        other = _contender(ratio["other"], contenders, text)
        factor = float(ratio["factor"])
        if not factor:
            raise UserError(f"--fail-if is {text!r}: the factor is 0; give one above 0, as 2x")
        return FailureCondition(words=text, figure=figure, side=side, is_over=is_over, factor=factor, other=other)
    if figure in OTHER_FIGURES:
        raise UserError(f"--fail-if is {text!r}: {figure} is no time; give a multiple of another's, as 2x {side}")
    try:
        bound_us = microseconds_of(written["bound"])
    except InvalidOperation as error:
        unknown = f"{written['bound']!r} is not understood"
        raise UserError(f"--fail-if is {text!r}, of which {unknown}; it takes {SYNTAX}") from error
    return FailureCondition(words=text, figure=figure, side=side, is_over=is_over, bound_us=bound_us)


def _contender(name: str, contenders: Sequence[str], text: str) -> str:
    """Return the contender of this name, in any case. UserError if there is none."""
    for contender in contenders:
        if contender.lower() == name.lower():
            return contender
    there_are = f"there are {', '.join(contenders)}{meant(name, contenders)}"
    raise UserError(f"--fail-if is {text!r}: {name!r} is not compared; {there_are}")


@dataclass(frozen=True)
class ConditionRow:
    """A condition at one rate: its arm, and the other arm if the bound is a multiple of another contender's figure."""

    condition: FailureCondition
    arm: Record
    other: Record | None

    @property
    def name(self) -> str:
        return f"{self.condition.words}, {self.arm['block']}"


def rows_of(conditions: Iterable[FailureCondition], record: Record) -> list[ConditionRow]:
    """Return a row for each condition at each rate."""
    rows = []
    for condition in conditions:
        for arm in record["arms"]:
            if arm["contender"] != condition.side:
                continue
            others = [
                other
                for other in record["arms"]
                if other["contender"] == condition.other and other["block"] == arm["block"] and other is not arm
            ]
            if condition.other is None or others:
                rows.append(ConditionRow(condition, arm, others[0] if others else None))
    return rows


def pair_of(row: ConditionRow, record: Record) -> ComparedPair:
    """Return the two arms of a row with a ratio, for the test of all rows together."""
    assert row.other is not None
    metric = row.condition.metric_in(row.arm)
    return ComparedPair(
        figure=metric,
        wording=WORDING,
        first=side_of(row.arm, metric, record),
        second=side_of(row.other, metric, record),
    )


def side_of(arm: Record, metric: str, record: Record) -> ComparedSide:
    """Return an arm's values by repeat. If the trial kept noisy runs on purpose, none of its repeats is noisy."""
    by_repeat = arm["metrics"].get(metric, {}).get("by_repeat", {})
    values = {int(repeat): float(value) for repeat, value in by_repeat.items()}
    noisy_repeats = []
    if record.get("redo_noisy"):
        noisy_repeats = [run["repeat"] for run in arm["runs"] if is_noisy_share(run.get("share_of_all_cpus"))]
    return ComparedSide(arm["contender"], values, arm["held"] is not False, noisy_repeats)


def lacks_orders(arm: Record, figure: str) -> str:
    """Return a clause if the arm's runs have too few orders for the percentile; empty if they have enough."""
    needed = LEAST_ORDERS.get(COMPLETION.get(figure, ""), 0)
    measured = arm.get("orders_measured")
    if measured is None or measured >= needed:
        return ""
    return f"{figure} needs {needed:,} orders, and a run has {measured:,}"


def ratio_check(row: ConditionRow, pair: ComparedPair, verdict: PairVerdict) -> GateCheck:
    """Judge a row with a ratio: missed or held only if the whole interval is beyond or within the bound."""
    condition = row.condition
    assert condition.factor is not None
    too_few = lacks_orders(row.arm, condition.figure)
    if too_few:
        return GateCheck(name=row.name, outcome=UNDECIDED, words=too_few)
    return interval_check(row.name, pair, verdict, condition.factor, is_over=condition.is_over)


def interval_check(name: str, pair: ComparedPair, verdict: PairVerdict, factor: float, *, is_over: bool) -> GateCheck:
    """Judge first / second against a factor; beyond it the check is missed.

    A side that lost its rate while the other kept it has missed a bound on times from above.
    """
    if is_over and pair.second.kept_rate and not pair.first.kept_rate:
        return GateCheck(name=name, outcome=MISSED, words=f"{pair.first.name} did not keep its rate")
    ratio = verdict.ratio
    if ratio is None or ratio.low is None or ratio.high is None or pair.is_too_noisy:
        return GateCheck(name=name, outcome=UNDECIDED, words=verdict.sentence)
    words = f"{ratio_in_words(ratio.value)}x {interval_in_words(ratio)}"
    return GateCheck(name=name, outcome=_outcome(ratio.low, ratio.high, factor, is_over=is_over), words=words)


def time_check(row: ConditionRow, record: Record) -> GateCheck:
    """Judge the median over repeats against a time, by its interval."""
    condition = row.condition
    assert condition.bound_us is not None
    metric = condition.metric_in(row.arm)
    estimate = row.arm["metrics"].get(metric)
    too_few = lacks_orders(row.arm, condition.figure)
    if not estimate or too_few:
        return GateCheck(name=row.name, outcome=UNDECIDED, words=too_few or "not measured")
    side = side_of(row.arm, metric, record)
    if condition.is_over and not side.kept_rate:
        return GateCheck(name=row.name, outcome=MISSED, words=f"{side.name} did not keep its rate")
    low = estimate["low"]
    high = estimate["high"]
    if low is None or high is None:
        return GateCheck(name=row.name, outcome=UNDECIDED, words="1 repeat has no interval")
    if 2 * side.noisy_among(side.values) > len(side.values):
        return GateCheck(name=row.name, outcome=UNDECIDED, words="too noisy to say")
    words = f"{three_digits(estimate['median'])} us ({three_digits(low)}..{three_digits(high)})"
    outcome = _outcome(low, high, condition.bound_us, is_over=condition.is_over)
    return GateCheck(name=row.name, outcome=outcome, words=words)


def _outcome(low: float, high: float, bound: float, *, is_over: bool) -> str:
    """Return MISSED or HELD if the whole interval says so, else UNDECIDED."""
    if is_over:
        is_missed = low > bound
        is_held = high <= bound
    else:
        is_missed = high < bound
        is_held = low >= bound
    if is_missed:
        return MISSED
    return HELD if is_held else UNDECIDED
