"""What `exchange paper NAME` will measure: the commands, and about how long each takes, and all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from exchange.json_records import Record
from exchange.words import counted
from exchange_simulation.launching.errors import UserError
from exchange_simulation.papers.extent import Extent
from exchange_simulation.papers.paper import Paper, PaperPart
from exchange_simulation.reports.formats.times import duration_in_words

ONE_NIGHT_S = 8 * 3600.0
IsMeasured = Callable[[PaperPart], bool]
"""Tells whether a part was measured before, by the measurement that goes on."""


@dataclass(frozen=True, kw_only=True)
class PlannedPart:
    """A part of a paper that will be measured, or was."""

    name: str
    command: str
    is_measured: bool
    expected_s: float = 0.0
    """About how long it takes on a quiet machine; 0 if it was measured, or cannot be."""
    why_impossible: str = ""
    """Why it cannot be measured here; empty if it can."""
    why_no_repeats: str = ""
    """Why the number of repeats that a user asked for does not hold for it; empty if it does."""
    why_loopback_alone: str = ""
    """Why the networks that a user asked for do not hold for it; empty if they do."""

    @property
    def note(self) -> str:
        """What stands behind the command. For example: about 12 s"""
        if self.is_measured:
            return "measured already"
        if self.why_impossible:
            return f"cannot be measured here: {self.why_impossible}"
        note = f"about {duration_in_words(self.expected_s)}"
        if self.why_no_repeats:
            note += f"; no repeats here: {self.why_no_repeats}"
        if self.why_loopback_alone:
            note += f"; on loopback alone: {self.why_loopback_alone}"
        return note

    def as_dict(self) -> Record:
        """Return the part as `--dry-run --json` prints it."""
        return {
            "part": self.name,
            "command": self.command,
            "measured": self.is_measured,
            "expected_s": self.expected_s,
            "impossible": self.why_impossible,
        }


def planned_parts(paper: Paper, extent: Extent, is_measured: IsMeasured = lambda _: False) -> list[PlannedPart]:
    """Return the paper's parts in its order."""
    return [_planned(part, extent, is_measured(part)) for part in paper.parts]


def _planned(part: PaperPart, extent: Extent, is_measured: bool) -> PlannedPart:
    command = part.command(extent)
    expected_s = 0.0
    why_impossible = ""
    if not is_measured:
        try:
            expected_s = part.expected_s(extent)
        except UserError as error:
            why_impossible = error.format_message()
    return PlannedPart(
        name=part.name,
        command=command,
        is_measured=is_measured,
        expected_s=expected_s,
        why_impossible=why_impossible,
        why_no_repeats=part.why_no_repeats if extent.repeats else "",
        why_loopback_alone=part.why_loopback_alone if extent.goes_beyond_loopback else "",
    )


def total_in_words(parts: list[PlannedPart]) -> str:
    """Return the number of parts, and about how long they take. For example: 5 parts, in all about 2 min 10 s on ..."""
    left = [part for part in parts if not part.is_measured]
    number = counted(len(parts), "parts")
    if len(left) < len(parts):
        number = f"{len(left)} of {number} left"
    total_s = sum(part.expected_s for part in left)
    nights = "; --resume goes on after an interruption, over several nights" if total_s > ONE_NIGHT_S else ""
    return f"{number}, in all about {duration_in_words(total_s)} on a quiet machine{nights}"


def plan_lines(parts: list[PlannedPart], place: str) -> Iterator[str]:
    """Yield the commands, each with its time behind a #, so that a shell takes the line; then the time of all.

    `place` is the sentence on the folder of the results.
    """
    for part in parts:
        yield f"{part.command}  # {part.note}"
    yield f"# {total_in_words(parts)}"
    yield f"# {place}"
