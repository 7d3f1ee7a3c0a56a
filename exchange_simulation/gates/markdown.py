"""The outcomes of a gate as Markdown, for the summary of a pull request."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from exchange_simulation.gates.gate_report import GateReport
from exchange_simulation.launching.files import write_whole
from exchange_simulation.reports.gate_outcomes import FAILED, PASSED, UNDECIDED

WORDS_OF_OUTCOMES = {FAILED: "**failed**", PASSED: PASSED, UNDECIDED: UNDECIDED}


def write_markdown(file: Path, report: GateReport) -> Path:
    """Write the summary."""
    return write_whole(file, markdown_of(report).encode())


def markdown_of(report: GateReport) -> str:
    """Return the summary: the answer, the conditions, what makes them doubtful, and the figures."""
    return "\n".join(_lines(report)) + "\n"


def _lines(report: GateReport) -> Iterator[str]:
    yield f"### exchange {report.command}: {_escaped(report.headline)}"
    yield ""
    if report.checks:
        yield from _table(("outcome", "what was found"), _check_rows(report))
        yield ""
    notes = [*report.notes_on_undecided, *report.notes]
    for note in notes:
        yield f"- {_escaped(note)}"
    if notes:
        yield ""
    if report.table:
        yield from _table(report.table.titles, report.table.rows)
        yield ""
    yield f"Folder: `{report.folder}`"


def _check_rows(report: GateReport) -> Iterator[Sequence[str]]:
    for check in report.checks:
        yield WORDS_OF_OUTCOMES[check.outcome], check.sentence


def _table(titles: Sequence[str], rows: Iterator[Sequence[str]] | Sequence[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(map(_escaped, titles))} |"
    yield f"|{'---|' * len(titles)}"
    for row in rows:
        yield f"| {' | '.join(map(_escaped, row))} |"


def _escaped(text: str) -> str:
    """Return the text with the characters escaped that would end a cell or begin a tag."""
    return text.replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")
