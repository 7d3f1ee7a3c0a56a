"""A run's page, and the report that makes it again: terminal output, figures, exports, and Spark's tables last."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from exchange.words import printable
from exchange_simulation.launching.errors import UserError
from exchange_simulation.launching.files import write_whole
from exchange_simulation.launching.interrupts import signals_deferred
from exchange_simulation.reports.drawing.figures import write_figures
from exchange_simulation.reports.drawing.templates import templates
from exchange_simulation.reports.gate_sentences import show_gate
from exchange_simulation.reports.run.figures import run_drawings, run_figures
from exchange_simulation.reports.run.minutes import minutes_table, show_minutes
from exchange_simulation.reports.run.run_folder import RunFolder, read_run_folder
from exchange_simulation.reports.run.seconds_tables import seconds_table, show_seconds
from exchange_simulation.reports.run.sentences import page_words
from exchange_simulation.reports.run.steps import steps_table
from exchange_simulation.reports.run.terminal import show_record

if TYPE_CHECKING:
    from exchange_simulation.reports.report import ReportOptions

TEMPLATES = templates(Path(__file__).parent)


@signals_deferred()
def write_page(run_folder: Path, content: RunFolder | None = None) -> Path:
    """Write the page beside run.json, and return its path. The page appears whole, by rename.

    `content` is the folder's content, if it was read already.
    """
    if content is None:
        content = read_run_folder(run_folder)
    return write_whole(run_folder / "report.html", page_html(content).encode())


def page_html(folder: RunFolder) -> str:
    """Return the page. Equal folders give equal pages, to the byte."""
    return TEMPLATES.get_template("page.html").render(
        page_words(folder.run),
        gate=folder.gate,
        drawings=run_drawings(folder),
        steps=steps_table(folder),
        seconds=seconds_table(folder),
        minutes=minutes_table(folder),
    )


def report_run(folder: Path, options: ReportOptions) -> int:
    """Show and write the report. Return exit code 1 if Spark could make no tables.

    An export (JSON, CSV, figures, HdrHistogram log) does not make tables anew that are up to date.
    """
    has_record = (folder / "run.json").exists()
    if options.quiet and not has_record:
        raise UserError(f"{folder} has no run.json, so there is no record to print: leave out --json and --csv")
    content = read_run_folder(folder)
    _show(folder, content.run if has_record else {}, options)
    if not options.quiet:
        show_seconds(content)
        show_minutes(content)
        show_gate(content.gate)
    for title, path in _write_files(folder, content, options).items():
        click.echo(printable(f"{title}: {path}"), err=options.quiet)
    if not has_record or not options.with_spark:
        return 0
    from exchange_simulation.reports.run.spark_tables import are_made, make_tables

    is_export = options.quiet or options.figures or options.hlog
    if not (is_export and are_made(folder)) and not make_tables(folder, options.quiet):
        return 1
    if not options.quiet:
        from exchange_simulation.reports.run.samples_table import show_samples

        show_samples(folder, content.run)
    return 0


def _show(folder: Path, record: dict[str, Any], options: ReportOptions) -> None:
    """Print the record as JSON, as CSV or as tables; `record` is empty if there is no run.json."""
    if options.as_json:
        click.echo((folder / "run.json").read_bytes(), nl=False)
    elif options.as_csv:
        from exchange_simulation.reports.exports import print_csv

        print_csv([record])
    elif record:
        show_record(record)
    else:
        why = f"{folder} has no run.json: the run was killed, or goes on; the page shows what its spool holds"
        click.echo(printable(why))


def _write_files(folder: Path, content: RunFolder, options: ReportOptions) -> dict[str, Path]:
    """Write the page and the files that were asked for; return their paths by their titles."""
    paths = {"page": write_page(folder, content)}
    if options.hlog:
        from exchange_simulation.reports.run.hlog import FILE, write_hlog

        paths["HdrHistogram log"] = write_hlog(folder / FILE, content)
    if options.figures:
        paths["figures"] = write_figures(folder, run_figures(content))
    return paths
