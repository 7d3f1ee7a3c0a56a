"""A run's page, `report.html`: one offline file, made from the run's folder."""

from __future__ import annotations

from pathlib import Path

from reports.drawing.templates import templates
from reports.run.figures import run_drawings
from reports.run.run_folder import RunFolder, read_run_folder
from reports.run.sentences import page_words
from runs.files import write_whole
from runs.interrupts import heeded_at_the_end

TEMPLATES = templates(Path(__file__).parent)


@heeded_at_the_end()
def write_page(run_folder: Path, known: RunFolder | None = None) -> Path:
    """Write the page beside run.json; it appears whole, by rename. `known`: the folder's content, if it was read."""
    return write_whole(run_folder / "report.html", page_html(known or read_run_folder(run_folder)).encode())


def page_html(folder: RunFolder) -> str:
    """Equal folders give equal pages, to the byte."""
    return TEMPLATES.get_template("page.html").render(page_words(folder.run), drawings=run_drawings(folder))
