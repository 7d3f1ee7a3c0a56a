"""The outcome of each condition of a gate, and the exit code of all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from exchange.unique import unique

HELD = "held"
MISSED = "missed"
UNDECIDED = "undecided"
GATE_MISSED = 3
"""The exit code of a command whose measurement is whole, but misses a condition."""


@dataclass(frozen=True, kw_only=True)
class GateCheck:
    """A condition and its outcome in one place: in a run, at a rate of a comparison, or for a figure of an arm."""

    condition: str
    """The condition as the user typed it, as p99 <= 1ms."""
    name: str
    """The condition and the place, as p99 of amqp over 2x zeromq, at 1,000 orders/s."""
    outcome: str
    """HELD, MISSED or UNDECIDED."""
    words: str
    """The figures behind the outcome."""

    @property
    def sentence(self) -> str:
        """For example: missed: p99 <= 1ms: 1,204 us"""
        return f"{self.outcome}: {self.name}: {self.words}"


@dataclass(frozen=True, kw_only=True)
class GateTable:
    """A table for the Markdown summary."""

    titles: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True, kw_only=True)
class GateReport:
    """All conditions of one measurement, with what a reader of a pull request wants to see beside them."""

    command: str
    """The command that measured, as compare."""
    folder: str
    headline: str
    checks: Sequence[GateCheck] = ()
    notes: Sequence[str] = ()
    """Sentences of caution: noise, and why a comparison with a baseline is weak."""
    table: GateTable | None = None
    seconds: float | None = None
    """How long the measurement took; None if its record does not say so."""

    @property
    def is_missed(self) -> bool:
        return any(check.outcome == MISSED for check in self.checks)

    @property
    def notes_on_undecided(self) -> list[str]:
        """A sentence for each condition of which no check is decided, since the exit code does not tell."""
        decided = {check.condition for check in self.checks if check.outcome != UNDECIDED}
        undecided = unique(check.condition for check in self.checks if check.condition not in decided)
        return [f"the exit code says nothing about {words!r}: none of its checks was decided" for words in undecided]

    def exit_code(self, measured: int) -> int:
        """Return the command's exit code; `measured` is that of the measurement itself, and goes first."""
        if measured == 0 and self.is_missed:
            return GATE_MISSED
        return measured
