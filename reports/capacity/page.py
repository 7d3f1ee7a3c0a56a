"""A capacity's page, `capacity.html`: one offline file, made from capacity.json."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from reports.capacity.figures import capacity_figures
from reports.capacity.sentences import METHOD, headline, percent, three_digits
from reports.drawing.figures import drawings
from reports.drawing.templates import templates
from reports.formats import date_and_time
from runs.files import write_whole
from runs.interrupts import heeded_at_the_end

TEMPLATES = templates(Path(__file__).parent, percent=percent, three_digits=three_digits, date_and_time=date_and_time)


@heeded_at_the_end()
def write_page(folder: Path, record: dict[str, Any]) -> Path:
    """Write the page beside capacity.json; it appears whole, by rename."""
    return write_whole(folder / "capacity.html", page_html(record).encode())


def page_html(record: dict[str, Any]) -> str:
    """Equal records give equal pages."""
    return TEMPLATES.get_template("capacity.html").render(
        record=record, title=headline(record), method=METHOD, drawings=drawings(capacity_figures(record))
    )


__all__ = ["capacity_figures", "page_html", "write_page"]
