"""A fault matrix' page, `faults.html`: one offline file with the matrix, and each cell's time line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from exchange.json_records import Record
from exchange.record_kinds import FaultsRecord
from exchange_simulation.launching.record.reading import read_record
from exchange_simulation.reports.drawing.canvas import empty_axes, linear_y, time_x
from exchange_simulation.reports.drawing.chart import Chart, Line, draw, label_ends, numbers_of
from exchange_simulation.reports.drawing.colours import BLUE, MUTED, ORANGE
from exchange_simulation.reports.drawing.figures import Figure, drawings, write_figures
from exchange_simulation.reports.drawing.templates import templates
from exchange_simulation.reports.faults.table import LEGEND, answer, cell_of, columns_of, in_short, measured, show
from exchange_simulation.reports.report import ReportOptions, print_report, write_html

TEMPLATES = templates(Path(__file__).parent, in_short=in_short)
SHADE = 0.15
FILE = "faults.json"


def page_html(record: Record) -> str:
    """Return the page. Equal records give equal pages."""
    head, *others = answer(record)
    return TEMPLATES.get_template("faults.html").render(
        record=record,
        title=head,
        others=others,
        legend=LEGEND,
        columns=columns_of(record),
        cell_of=cell_of,
        drawings=drawings(faults_figures(record)),
    )


def write_page(folder: Path, record: Record) -> Path:
    """Write a record's page into its folder, and return the page's path."""
    return write_html(folder / "faults.html", page_html(record))


def faults_figures(record: Record) -> Iterator[Figure]:
    """Yield a time line for each cell; the style of page or files must be set."""
    for cell in measured(record):
        if cell["timeline"]:
            yield Figure(f"{cell['fault']} over {cell['over']}", _time_line(cell), cell["said"], cell["run"])


def _time_line(cell: Record) -> Chart:
    """Draw orders handed over and answered in every tenth of a second, the fault's time shaded."""
    axes = empty_axes("orders/s", "s")
    at, handed, answered = (np.array(column, float) for column in zip(*cell["timeline"], strict=True))
    lines = {"handed over": (Line(at, handed), ORANGE), "answered": (Line(at, answered), BLUE)}
    time_x(axes, float(at[-1]))
    began, *lifted = cell["fault_s"]
    axes.axvspan(began, lifted[0] if lifted else float(at[-1]), color=MUTED, alpha=SHADE, linewidth=0)
    labels = [draw(axes, line, text=text, colour=colour) for text, (line, colour) in lines.items()]
    linear_y(axes)
    label_ends(axes, labels)
    return Chart(axes, numbers_of("s", "orders_per_s", {text: line for text, (line, _) in lines.items()}))


def report_faults(folder: Path, options: ReportOptions) -> int:
    """Make a matrix's table, page and figure files from its record. Returns the exit code, 0."""
    record = read_record(folder / FILE, FaultsRecord)
    rows = [{name: value for name, value in cell.items() if name != "timeline"} for cell in record["cells"]]
    return print_report(
        folder,
        "matrix",
        record,
        json_value=rows,
        csv_rows=rows,
        options=options,
        show=show,
        write_page=write_page,
        write_figures=lambda: write_figures(folder, faults_figures(record)),
    )
