"""A comparison's page, `comparison.html`: one offline file, made of comparison.json."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jinja2 import ChainableUndefined, Environment, FileSystemLoader

from experiments.compare.figures import draw, drawings
from experiments.compare.paper import FIGURES_8, TABLE_1
from experiments.compare.paper_figures import paper_figures
from experiments.compare.published import published, transports
from experiments.compare.rounding import interval, number, rounded
from experiments.compare.sentences import circumstances, common_settings, own_settings, title
from experiments.errors import cannot_write
from experiments.page.formats import FORMATS, condition
from experiments.page.writer import TEMPLATES
from experiments.trials.metrics import COMPONENTS
from experiments.whole_file import whole_file

COMPLETION = {
    clock: tuple(f"{clock}_{name}_us" for name in ("mean", "p50", "p90", "p99", "p999", "max"))
    for clock in ("due", "handed_over")
}
PACKETS = {"packets_per_order": "packets an order", "packet_bytes": "mean bytes", "packet_gap_us": "mean gap, us"}
CPU = {"cpu_s_per_million": "in all", **{f"{name}_cpu_s_per_million": name for name in COMPONENTS}}
RESOURCES = {
    **{f"{name}_peak_mb": f"{name}, MB" for name in COMPONENTS},
    **{f"{name}_switches_per_order": f"{name}, switches" for name in COMPONENTS},
}
"""Metrics of the tables, with their columns' titles."""


def write_page(folder: Path, record: dict[str, Any]) -> Path:
    """Beside comparison.json; it appears whole, by rename."""
    html, page = page_html(record), folder / "comparison.html"
    try:
        with whole_file(page) as file:
            file.write(html.encode())
    except OSError as error:
        raise cannot_write(page, error) from error
    return page


def page_html(record: dict[str, Any]) -> str:
    """Equal records give equal pages."""
    return _environment().get_template("comparison.html").render(
        record=record, title=title(record), circumstances=circumstances(record), drawings=draw(record),
        completion=COMPLETION, cpu=_measured(record, CPU), resources=_measured(record, RESOURCES),
        as_in_paper=drawings(paper_figures(record)), published=published(record), transports=transports(record),
        packets=PACKETS, paper=TABLE_1, paper_says=FIGURES_8,
        settings=common_settings(record), own_settings=own_settings(record),
    )  # fmt: skip


def _measured(record: dict[str, Any], columns: dict[str, str]) -> dict[str, str]:
    """The columns that have something to show."""
    return {name: words for name, words in columns.items() if any(name in arm["metrics"] for arm in record["arms"])}


def _environment() -> Environment:
    """Its own templates, and the style and macros of a run's page."""
    environment = Environment(
        loader=FileSystemLoader([Path(__file__).parent, TEMPLATES]), autoescape=True, undefined=ChainableUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    environment.globals.update(formats=FORMATS, condition=condition)
    environment.filters.update(rounded=rounded, interval=interval, number=number)
    return environment
