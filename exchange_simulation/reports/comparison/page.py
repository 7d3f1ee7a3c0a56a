"""A comparison's page, `comparison.html`: one offline file, made from comparison.json."""

from __future__ import annotations

from pathlib import Path

from exchange.json_records import Record
from exchange.percentiles import FIGURES
from exchange_simulation.launching.metrics import COMPONENTS
from exchange_simulation.reports.comparison.answer import headline, other_answers, ratio_plot
from exchange_simulation.reports.comparison.figures import trial_figures
from exchange_simulation.reports.comparison.paper_figures import paper_figures, published, transports
from exchange_simulation.reports.comparison.sentences import (
    FIGURES_8,
    NOT_BESIDE,
    TABLE_1,
    circumstances,
    common_settings,
    cpu_beyond,
    cpu_metric,
    has_its_roles,
    own_settings,
    sureness,
    title,
)
from exchange_simulation.reports.drawing.figures import drawings
from exchange_simulation.reports.drawing.templates import templates
from exchange_simulation.reports.formats.estimates import median_text, middle_half
from exchange_simulation.reports.formats.numbers import number_text
from exchange_simulation.reports.report import write_html

TEMPLATES = templates(Path(__file__).parent, rounded=median_text, middle_half=middle_half, number=number_text)
COMPLETION = {clock: {name: f"{clock}_{name}_us" for name in FIGURES} for clock in ("due", "handed_over")}
PACKETS = {"packets_per_order": "packets an order", "packet_bytes": "mean bytes", "packet_gap_us": "mean gap, us"}
CPU = {"cpu_s_per_million": "in all", **{cpu_metric(name): name for name in COMPONENTS}}
RESOURCES = {
    **{f"{name}_peak_mb": f"{name}, MB" for name in COMPONENTS},
    **{f"{name}_switches_per_order": f"{name}, switches" for name in COMPONENTS},
}
"""The metrics of each table, with their columns' titles."""
SHAPE_ONLY = "Other hardware: set it beside ours for its shape only."


def page_html(record: Record) -> str:
    """Equal records give equal pages."""
    beside = has_its_roles(record)
    return TEMPLATES.get_template("comparison.html").render(
        record=record,
        title=title(record),
        circumstances=circumstances(record),
        sureness=sureness(record),
        headline=headline(record),
        answers=other_answers(record),
        plot=ratio_plot(record),
        drawings=drawings(trial_figures(record)),
        completion=COMPLETION,
        cpu=_measured(record, CPU),
        cpu_beyond=cpu_beyond,
        resources=_measured(record, RESOURCES),
        as_in_paper=drawings(paper_figures(record)),
        published=published(record),
        transports=transports(record),
        packets=PACKETS,
        paper=TABLE_1 if beside else (),
        paper_says=f"{FIGURES_8} {SHAPE_ONLY}" if beside else NOT_BESIDE,
        settings=common_settings(record),
        own_settings=own_settings(record),
    )


def write_page(folder: Path, record: Record) -> Path:
    """Write a record's page into its folder, and return the page's path."""
    return write_html(folder / "comparison.html", page_html(record))


def _measured(record: Record, columns: dict[str, str]) -> dict[str, str]:
    """The columns whose metric any arm measured."""
    return {name: words for name, words in columns.items() if any(name in arm["metrics"] for arm in record["arms"])}
