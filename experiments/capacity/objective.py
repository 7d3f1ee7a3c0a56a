"""Objectives such as `p99 <= 1ms, lag p99 <= 500us`: how they are read, which runs hold them, by how much."""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import ceil, log
from typing import Any

from exchange.json_records import Record
from runs.errors import UserError

CLOCKS = {"due": "due", "": "due", "handed over": "handed_over", "lag": "lag"}
"""The record's clock by the words before a figure: completion from due time or handing over, or the gateway's lag."""
FIGURES = {"mean": "mean", "p50": "p50", "p90": "p90", "p99": "p99", "p99.9": "p999", "max": "max"}
ORDERS_BEYOND = 10
"""Orders that must lie beyond a percentile for it to be judged."""
TAIL_SHARE = {"p50": 0.5, "p90": 0.1, "p99": 0.01, "p999": 0.001, "mean": 0.01, "max": 0.01}
"""The share of orders beyond a figure. Mean and maximum have none; like a p99 they are judged from 1,000 orders."""
LEAST_ORDERS = 100
"""Orders of a probe whose objective has no figures."""
UNITS_US = {"ns": 1e-3, "us": 1.0, "ms": 1e3, "s": 1e6}
TERM = re.compile(r"(?:(due|handed over|lag) +)?(mean|p50|p90|p99\.9|p99|max) *<=? *([0-9]*\.?[0-9]+) *(ns|us|ms|s)")
LOSS = re.compile(r"loss *(?:<=|==?) *0")
ALLOWED = "FIGURE <= TIME, with commas between several: p99 <= 1ms, lag p99 <= 500us, max <= 20ms, loss = 0"


@dataclass(frozen=True)
class Term:
    """One figure of a run and its upper bound."""

    clock: str
    figure: str
    most_us: float
    words: str

    def value_us(self, record: Record) -> float | None:
        measured: dict[str, Any] = record.get("completion_us", {}) | {"lag": record.get("lag_us", {})}
        found: float | None = measured.get(self.clock, {}).get(self.figure)
        return found

    def broken_by(self, record: Record) -> str | None:
        """The measured value as a sentence, None if it is within the bound."""
        value_us = self.value_us(record)
        if value_us is None:
            return f"{self.words}: not measured"
        return None if value_us <= self.most_us else f"{self.words}: {value_us:,.0f} us"


@dataclass(frozen=True)
class Objective:
    """All terms must hold, and the run must be complete: nothing was lost and the rate was kept."""

    terms: tuple[Term, ...]

    def broken_by(self, record: Record) -> str | None:
        """The first reason why the run does not hold the objective, None if it does."""
        if record["status"] != "complete":
            return f"{record['status']}: {next(iter(record['reasons']), 'no reason known')}"
        return next((why for term in self.terms if (why := term.broken_by(record))), None)

    def log_ratio(self, record: Record) -> float | None:
        """Logarithm of figure / bound, of the term that is nearest to breaking; None if one was not measured."""
        values = [(term.value_us(record), term.most_us) for term in self.terms]
        ratios = [log(value_us / most_us) for value_us, most_us in values if value_us]
        return max(ratios) if ratios and len(ratios) == len(values) else None

    @property
    def words(self) -> str:
        return ", ".join(term.words for term in self.terms) or "loss = 0"

    @property
    def needed_orders(self) -> int:
        """The orders that a run must have measured before the objective can be judged: 10 / (1 - p)."""
        return max([LEAST_ORDERS, *(ceil(ORDERS_BEYOND / TAIL_SHARE[term.figure] - 1e-9) for term in self.terms)])


def objective_of(text: str) -> Objective:
    """The objective that `text` describes. UserError names the part that is not understood."""
    parts = [part.strip() for part in text.split(",")]
    return Objective(tuple(_term(part, text) for part in parts if not LOSS.fullmatch(part)))


def _term(part: str, text: str) -> Term:
    found = TERM.fullmatch(part)
    if found is None or not float(found[3]):
        raise UserError(f"--slo is {text!r}, of which {part!r} is not understood; it takes {ALLOWED}")
    clock, figure, number, unit = found.groups()
    words = " ".join(filter(None, (clock, figure, "<=", number + unit)))
    return Term(CLOCKS[clock or ""], FIGURES[figure], float(number) * UNITS_US[unit], words)
