"""A run's folder in, its page out."""

from __future__ import annotations

from pathlib import Path

from reports.drawing.templates import templates
from reports.run.figures import draw_figures
from reports.run.run_folder import RunFolder, read_run_folder
from reports.run.story import told
from runs.files import write_whole
from runs.interrupts import heeded_at_the_end

TEMPLATES = templates(Path(__file__).parent)


@heeded_at_the_end()
def write_page(run_folder: Path, known: RunFolder | None = None) -> Path:
    """Write `report.html` beside `run.json`; it appears whole, by rename. `known` is what the folder holds."""
    return write_whole(run_folder / "report.html", page_html(known or read_run_folder(run_folder)).encode())


def page_html(folder: RunFolder) -> str:
    """Equal folders give equal pages, to the byte."""
    return TEMPLATES.get_template("page.html").render(told(folder.run), drawings=draw_figures(folder))
