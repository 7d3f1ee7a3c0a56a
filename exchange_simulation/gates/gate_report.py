"""The outcomes of a gate with what a pull request shows beside them, and the command's exit code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from exchange_simulation.reports.gate_outcomes import GateOutcomes

GATE_FAILED = 3
"""The exit code of a command whose measurement is whole, but fails a condition."""


@dataclass(frozen=True, kw_only=True)
class GateTable:
    """A table for the Markdown summary."""

    titles: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True, kw_only=True)
class GateReport(GateOutcomes):
    """All conditions of one measurement, with what a reader of a pull request wants to see beside them."""

    command: str
    """The command that measured, as compare."""
    folder: str
    headline: str
    doubts: Sequence[str] = ()
    """Sentences of caution about the measurement itself: noise, and why a run is not complete."""
    table: GateTable | None = None
    seconds: float | None = None
    """How long the measurement took; None if its record does not say so."""

    @property
    def notes(self) -> list[str]:
        """The doubts, and the sentences on a baseline."""
        return [*self.doubts, *self.baseline_notes]

    def exit_code(self, measured: int) -> int:
        """Return the command's exit code; `measured` is that of the measurement itself, and goes first."""
        if measured == 0 and self.is_failed:
            return GATE_FAILED
        return measured
