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
from exchange_simulation.reports.faults.table import (
    LEGEND,
    answer,
    cell_of,
    cell_summary,
    measured_cells,
    show,
    transports_of,
)
from exchange_simulation.reports.report import ReportOptions, print_report, write_html

TEMPLATES = templates(Path(__file__).parent, in_short=cell_summary)
SHADE = 0.15
"""The opacity of the band behind the fault's time."""
FILE = "faults.json"


def page_html(record: Record) -> str:
    """Return the page. Equal records give equal pages."""
    head, *others = answer(record)
    return TEMPLATES.get_template("faults.html").render(
        record=record,
        title=head,
        others=others,
        legend=LEGEND,
        columns=transports_of(record),
        cell_of=cell_of,
        drawings=drawings(faults_figures(record)),
    )


def write_page(folder: Path, record: Record) -> Path:
    """Write a record's page into its folder, and return the page's path."""
    return write_html(folder / "faults.html", page_html(record))


def faults_figures(record: Record) -> Iterator[Figure]:
    """Yield a time line for each cell; the style of page or files must be set."""
    for cell in measured_cells(record):
        if cell["timeline"]:
            yield Figure(f"{cell['fault']} over {cell['over']}", _time_line(cell), cell["said"], cell["run"])


def _time_line(cell: Record) -> Chart:
    """Draw orders handed over and answered in every tenth of a second, the fault's time shaded."""
    axes = empty_axes("orders/s", "s")
    times_s, handed_over_per_s, answered_per_s = np.array(cell["timeline"], float).T
    handed_over = Line(times_s, handed_over_per_s)
    answered = Line(times_s, answered_per_s)
    end_s = float(times_s[-1])
    time_x(axes, end_s)
    fault_begin_s, *lifted_s = cell["fault_s"]
    fault_end_s = lifted_s[0] if lifted_s else end_s
    axes.axvspan(fault_begin_s, fault_end_s, color=MUTED, alpha=SHADE, linewidth=0)
    labels = [
        draw(axes, handed_over, text="handed over", colour=ORANGE),
        draw(axes, answered, text="answered", colour=BLUE),
    ]
    linear_y(axes)
    label_ends(axes, labels)
    numbers = numbers_of("s", "orders_per_s", {"handed over": handed_over, "answered": answered})
    return Chart(axes, numbers)


def report_faults(folder: Path, options: ReportOptions) -> int:
    """Make a matrix's table, page and figure files from its record. Returns the exit code, 0."""
    record = read_record(folder / FILE, FaultsRecord)
    rows = []
    for cell in record["cells"]:
        rows.append({name: value for name, value in cell.items() if name != "timeline"})
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
