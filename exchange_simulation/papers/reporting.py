"""`exchange report` of a paper's folder: what follows from its parts, made again; its table and its page."""

from __future__ import annotations

from pathlib import Path

from exchange_simulation.launching.errors import UserError
from exchange_simulation.papers.extent import recorded_extent
from exchange_simulation.papers.page import write_page
from exchange_simulation.papers.paper_folder import (
    outcome_fields,
    paper_in,
    read_paper,
    read_parts,
    recorded_failures,
)
from exchange_simulation.papers.terminal import show
from exchange_simulation.reports.report import ReportOptions, print_report


def report_paper(folder: Path, options: ReportOptions) -> int:
    """Show a paper's folder and make its page; returns the exit code, 0."""
    if options.hlog:
        raise UserError(f"--hlog is of a run, and {folder} is a paper's: say --json, or --csv for its claims")
    if options.figures:
        raise UserError(
            f"--figures is of one measurement: give a part of {folder}, or exchange paper NAME --export DIR"
        )
    record = read_paper(folder)
    paper = paper_in(record)
    records = read_parts(folder, paper)
    commands = {entry["part"]: entry["command"] for entry in record["parts"]}
    failures = recorded_failures(record, records)
    record |= outcome_fields(paper, recorded_extent(record), records, failures, record["versions"])
    for entry in record["parts"]:
        entry["command"] = commands.get(entry["part"], entry["command"])  # an older version may have had another one
    return print_report(
        folder,
        "paper",
        record,
        json_value=record,
        csv_rows=record["claims"],
        options=options,
        show=show,
        write_page=write_page,
        write_figures=lambda: folder,
    )
