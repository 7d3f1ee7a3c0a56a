"""What was measured of a benchmark so far, and what its record says of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from messaging.benchmark import Cell
from messaging.measuring import COMPLETE, INVALID, PARTIAL, Record
from messaging.results import row_of

UNFINISHED = "it goes on, or was killed"


@dataclass
class Made:
    """Repeats, cell by cell in the order of the plan; why not all, where it was not."""

    cells: Sequence[Cell]
    repeats: list[list[Record]] = field(init=False)
    stopped: str | None = UNFINISHED

    def __post_init__(self) -> None:
        self.repeats = [[] for _ in self.cells]

    @property
    def is_empty(self) -> bool:
        return not any(self.repeats)

    def found(self) -> Record:
        """status, reasons, and a row for each cell that was measured."""
        rows = [row_of(cell, repeats) for cell, repeats in zip(self.cells, self.repeats, strict=True) if repeats]
        reasons = [self.stopped] * bool(self.stopped) + _reasons(rows)
        status = PARTIAL if self.stopped else INVALID if reasons else COMPLETE
        return {"status": status, "reasons": reasons, "rows": rows}


def _reasons(rows: Sequence[Record]) -> list[str]:
    return [
        f"{row['words']}, repeat {repeat['repeat']}: {reason}"
        for row in rows
        for repeat in row["repeats"]
        if repeat["status"] == INVALID
        for reason in repeat["reasons"]
    ]
