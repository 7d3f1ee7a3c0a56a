"""gate.json: the outcome of each condition that a gate set for a run or a comparison.

The gates judge a record once. Pages and terminal show what the file says, so that they agree with the exit code.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from exchange.json_records import SCHEMA
from exchange.record_kinds import GateRecord
from exchange.unique import unique
from exchange_simulation.launching.files import write_json
from exchange_simulation.launching.record.reading import read_record

FILE = "gate.json"
PASSED = "passed"
FAILED = "failed"
UNDECIDED = "undecided"
OUTCOMES = (FAILED, UNDECIDED, PASSED)
"""In the order in which a page shows them."""


@dataclass(frozen=True, kw_only=True)
class GateCheck:
    """A condition and its outcome in one place: in a run, at a rate of a comparison, or for a figure of an arm."""

    condition: str
    """The condition as the user typed it, as p99 <= 1ms."""
    requirement: str
    """What must be, and where: p99 of amqp not over 2 times zeromq's, at 1,000 orders/s. Equal in every measurement."""
    outcome: str
    """PASSED, FAILED or UNDECIDED."""
    sentence: str
    """The figure, and on which side of its bound it lies; gates/judged_bound.py makes it."""

    @property
    def line(self) -> str:
        """For example: failed: p99 is 1,204 us, over 1ms"""
        return f"{self.outcome}: {self.sentence}"


@dataclass(frozen=True, kw_only=True)
class GateOutcomes:
    """The outcomes of all conditions of one measurement."""

    checks: Sequence[GateCheck] = ()
    baseline_notes: Sequence[str] = ()
    """Sentences on a baseline: why a comparison with it is weak, and figures beside it that no condition judges."""

    @property
    def is_empty(self) -> bool:
        """True if there was neither a condition nor a baseline."""
        return not self.checks and not self.baseline_notes

    @property
    def is_failed(self) -> bool:
        return any(check.outcome == FAILED for check in self.checks)

    @property
    def checks_by_outcome(self) -> list[GateCheck]:
        """The checks in the order of OUTCOMES."""
        return sorted(self.checks, key=lambda check: OUTCOMES.index(check.outcome))

    @property
    def summary(self) -> str:
        """The number of checks with each outcome. For example: 1 failed, 2 undecided, 5 passed"""
        outcomes = [check.outcome for check in self.checks]
        return ", ".join(f"{outcomes.count(outcome)} {outcome}" for outcome in OUTCOMES if outcome in outcomes)

    @property
    def notes_on_undecided(self) -> list[str]:
        """A sentence for each condition of which no check is decided, since the exit code does not tell."""
        decided = {check.condition for check in self.checks if check.outcome != UNDECIDED}
        undecided = unique(check.condition for check in self.checks if check.condition not in decided)
        return [f"the exit code says nothing about {words!r}: none of its checks was decided" for words in undecided]


def read_outcomes(folder: Path) -> GateOutcomes:
    """Return the outcomes in a folder; empty ones if no gate judged it. Unusable if the file is damaged or newer."""
    file = folder / FILE
    if not file.exists():
        return GateOutcomes()
    record = read_record(file, GateRecord)
    checks = [
        GateCheck(
            condition=check["condition"],
            requirement=check["requirement"],
            outcome=check["outcome"],
            sentence=check["sentence"],
        )
        for check in record["checks"]
    ]
    return GateOutcomes(checks=checks, baseline_notes=record["baseline_notes"])


def write_outcomes(folder: Path, outcomes: GateOutcomes) -> None:
    """Write the outcomes into a folder, unless they are empty."""
    if outcomes.is_empty:
        return
    checks = [asdict(check) for check in outcomes.checks]
    write_json(folder / FILE, {"schema": SCHEMA, "checks": checks, "baseline_notes": list(outcomes.baseline_notes)})


def remove_outcomes(folder: Path) -> None:
    """Remove outcomes of fewer runs than the folder is going to have."""
    (folder / FILE).unlink(missing_ok=True)
