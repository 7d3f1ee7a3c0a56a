"""`exchange paper NAME --export DIR`: what an artefact review asks for, as files of common kinds.

The folder holds the plan (commands.txt), the claims and the values as CSV and as LaTeX tables, each part's figures as
SVG, PNG and CSV, its record as JSON with every repeat, the machine and versions, and how to cite the paper.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from exchange.json_records import Record
from exchange_simulation.launching.errors import writing
from exchange_simulation.launching.files import json_bytes, write_whole
from exchange_simulation.papers.claims import PartRecords
from exchange_simulation.papers.extent import recorded_extent
from exchange_simulation.papers.paper import Paper
from exchange_simulation.papers.paper_folder import paper_in, read_parts
from exchange_simulation.papers.sentences import outcome_in_words, seen

CLAIM_COLUMNS = (
    "place",
    "sentence",
    "statistic",
    "expected",
    "ratio",
    "low",
    "high",
    "repeats",
    "outcome",
    "as_expected",
    "of_hardware",
    "by_construction",
    "network",
)
VALUE_COLUMNS = ("part", "what", "paper", "here")
LATEX_SPECIAL = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
}


def export_paper(folder: Path, record: Record, target: Path) -> Path:
    """Write the files into `target`, which is made. UserError or ClickException if they cannot be written."""
    paper = paper_in(record)
    with writing(target):
        target.mkdir(parents=True, exist_ok=True)
    write_whole(target / "commands.txt", "".join(f"{part['command']}\n" for part in record["parts"]).encode())
    write_whole(target / "citation.txt", f"{paper.citation}\n".encode())
    machine = {
        "started_at": record["started_at"],
        **recorded_extent(record).as_dict(),
        "host": record["host"],
        "versions": record["versions"],
    }
    write_whole(target / "machine.json", json_bytes(machine))
    claims = [[_text(claim.get(name)) for name in CLAIM_COLUMNS] for claim in record["claims"]]
    _write_csv(target / "claims.csv", CLAIM_COLUMNS, claims)
    in_latex = [
        [claim["place"], claim["sentence"], claim["expected"], seen(claim), outcome_in_words(claim)]
        for claim in record["claims"]
    ]
    _write_latex(target / "claims.tex", ("where", "claim", "expected", "seen", "outcome"), in_latex)
    records = read_parts(folder, paper)
    values = list(_values(paper, records))
    _write_csv(target / "values.csv", VALUE_COLUMNS, values)
    _write_latex(target / "values.tex", VALUE_COLUMNS, values)
    _write_parts(paper, records, target)
    return target


def _values(paper: Paper, records: PartRecords) -> Iterator[list[str]]:
    """Yield a row for each value that the paper prints, with ours."""
    for part in paper.parts:
        record = records.get(part.name)
        if record is not None:
            for value in part.values(record):
                yield [part.name, value.title, value.paper, value.ours]


def _write_parts(paper: Paper, records: PartRecords, target: Path) -> None:
    """Write each part's record, and its figures as files."""
    for part in paper.parts:
        record = records.get(part.name)
        if record is None:
            continue
        part_folder = target / part.name
        with writing(part_folder):
            part_folder.mkdir(exist_ok=True)
        write_whole(part_folder / "record.json", json_bytes(record))
        part.write_figures(part_folder, record)


def _text(value: object) -> str:
    return "" if value is None else str(value)


def _write_csv(path: Path, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(columns)
    table.writerows(rows)
    write_whole(path, text.getvalue().encode())


def _write_latex(path: Path, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Write a table for LaTeX's booktabs."""
    lines = [r"\begin{tabular}{" + "l" * len(columns) + "}", r"\toprule", _latex_row(columns), r"\midrule"]
    lines += [_latex_row(row) for row in rows]
    lines += [r"\bottomrule", r"\end{tabular}", ""]
    write_whole(path, "\n".join(lines).encode())


def _latex_row(cells: Sequence[str]) -> str:
    return " & ".join(_escaped(cell) for cell in cells) + r" \\"


def _escaped(text: str) -> str:
    return "".join(LATEX_SPECIAL.get(character, character) for character in text)
