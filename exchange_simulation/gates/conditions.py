"""`--fail-if` of a comparison: conditions under which it fails, as "p99 of amqp over 2x zeromq"."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import InvalidOperation
from enum import Enum, auto

from exchange.allowed import meant
from exchange.json_records import Record
from exchange.percentiles import FIGURES
from exchange.quantities import microseconds_of, number_of
from exchange_simulation.launching.errors import UserError

SYNTAX = "FIGURE of NAME over FACTORx NAME, or over TIME, as 'p99 of amqp over 2x zeromq' or 'p50 of tcp over 1ms'"
CONDITION = re.compile(r"(?P<figure>\S+) +of +(?P<contender>.+?) +(?P<word>over|under) +(?P<bound>.+)")
RATIO = re.compile(r"(?P<factor>[0-9]*\.?[0-9]+)x +(?P<other>.+)")
OVER = "over"
UNDER = "under"
CPU = "cpu"


class FigureKind(Enum):
    """What a figure measures. A rate that was not kept means something else for each kind; see condition_checks.py."""

    COMPLETION = auto()
    RATE = auto()
    CPU = auto()


COMPLETION_NAMES = {label: name for name, label in FIGURES.items()}
"""Names of completion figures in a record, by the word of a condition."""
OTHER_FIGURES = {CPU: "cpu_s_per_million", "rate": "orders_per_s"}
"""Metrics that are no completion times, by the word of a condition."""
KINDS_OF_OTHER_FIGURES = {CPU: FigureKind.CPU, "rate": FigureKind.RATE}


@dataclass(frozen=True, kw_only=True)
class FailureCondition:
    """A figure of one contender that must not be beyond a bound."""

    words: str
    figure: str
    """A figure of completion times, as p99, or cpu or rate."""
    contender: str
    is_over: bool
    """True if the comparison fails above the bound, False if it fails below."""

    @property
    def figure_in_words(self) -> str:
        """For example: p99 of amqp, or CPU of amqp"""
        figure = "CPU" if self.figure == CPU else self.figure
        return f"{figure} of {self.contender}"

    @property
    def side(self) -> str:
        """The side of the bound on which the comparison fails: over, or under."""
        return OVER if self.is_over else UNDER

    @property
    def kind(self) -> FigureKind:
        return KINDS_OF_OTHER_FIGURES.get(self.figure, FigureKind.COMPLETION)

    def metric_in(self, arm: Record) -> str:
        """Return the metric of an arm; of completion times, from due, or from handing over if no order was due."""
        if self.figure in OTHER_FIGURES:
            return OTHER_FIGURES[self.figure]
        name = COMPLETION_NAMES[self.figure]
        from_due = f"due_{name}_us"
        return from_due if from_due in arm["metrics"] else f"handed_over_{name}_us"


@dataclass(frozen=True, kw_only=True)
class RatioCondition(FailureCondition):
    """The bound is a multiple of another contender's figure."""

    factor: float
    other_contender: str


@dataclass(frozen=True, kw_only=True)
class TimeCondition(FailureCondition):
    """The bound is a time; the figure is one of completion times."""

    bound_us: float
    bound_as_typed: str
    """For example: 1ms"""


def condition_of(text: str, contenders: Sequence[str]) -> RatioCondition | TimeCondition:
    """Return the condition that the text describes. UserError names the part that is not understood."""
    written = CONDITION.fullmatch(text.strip())
    if written is None:
        raise UserError(f"--fail-if is {text!r}; it takes {SYNTAX}")
    figure = written["figure"].lower()
    known = [*COMPLETION_NAMES, *OTHER_FIGURES]
    if figure not in known:
        raise UserError(f"--fail-if is {text!r}: {figure!r} is no figure; there are {', '.join(known)}")
    is_over = written["word"] == OVER
    contender = _contender(written["contender"], contenders, text)
    ratio = RATIO.fullmatch(written["bound"])
    if ratio:
        return RatioCondition(
            words=text,
            figure=figure,
            contender=contender,
            is_over=is_over,
            factor=_factor(ratio["factor"], text),
            other_contender=_other_contender(ratio["other"], contender, contenders, text),
        )
    if figure in OTHER_FIGURES:
        raise UserError(f"--fail-if is {text!r}: {figure} is no time; give a multiple of another's, as 2x {contender}")
    bound_us = _bound_us(written["bound"], text)
    return TimeCondition(
        words=text,
        figure=figure,
        contender=contender,
        is_over=is_over,
        bound_us=bound_us,
        bound_as_typed=written["bound"],
    )


def _factor(written: str, text: str) -> float:
    """Return the factor. UserError unless it is above 0 and finite: no figure is beyond such a bound, or each is."""
    try:
        factor = float(number_of(written))
    except InvalidOperation as error:
        raise UserError(f"--fail-if is {text!r}: the factor is too large; give one as 2x") from error
    if factor == 0:
        raise UserError(f"--fail-if is {text!r}: the factor is 0; give one above 0, as 2x")
    return factor


def _bound_us(written: str, text: str) -> float:
    """Return the time in microseconds. UserError unless it is above 0: all completion times are."""
    try:
        bound_us = microseconds_of(written)
    except InvalidOperation as error:
        unknown = f"{written!r} is not understood"
        raise UserError(f"--fail-if is {text!r}, of which {unknown}; it takes {SYNTAX}") from error
    if bound_us <= 0:
        raise UserError(f"--fail-if is {text!r}: the time is {written}; give one above 0, as 1ms")
    return bound_us


def _contender(name: str, contenders: Sequence[str], text: str) -> str:
    """Return the contender of this name, in any case. UserError if there is none."""
    for contender in contenders:
        if contender.lower() == name.lower():
            return contender
    there_are = f"there are {', '.join(contenders)}{meant(name, contenders)}"
    raise UserError(f"--fail-if is {text!r}: {name!r} is not compared; {there_are}")


def _other_contender(name: str, contender: str, contenders: Sequence[str], text: str) -> str:
    """Return the contender whose figure is the bound. UserError if there is none, or if it is `contender` itself."""
    other = _contender(name, contenders, text)
    if other == contender:
        others = [candidate for candidate in contenders if candidate != contender]
        allowed = f"name another contender: {', '.join(others)}" if others else "compare a second contender"
        raise UserError(f"--fail-if is {text!r}: it compares {contender} with itself; {allowed}")
    return other
