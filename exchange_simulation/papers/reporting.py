"""`exchange report` of a paper's folder: its claims tested again, its table, its page, its figures as files."""

from __future__ import annotations

from pathlib import Path

from exchange_simulation.launching.errors import UserError
from exchange_simulation.launching.record.noise_summary import NOISE_SUMMARY
from exchange_simulation.papers.page import write_page
from exchange_simulation.papers.paper_folder import (
    brokers_of,
    caveats_of,
    noise_of_parts,
    paper_in,
    read_paper,
    read_parts,
    tested_claims,
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
    record["claims"] = tested_claims(paper, records)
    record["caveats"] = caveats_of(records)
    record["brokers"] = brokers_of(records)
    record[NOISE_SUMMARY] = noise_of_parts(records).as_dict()
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
