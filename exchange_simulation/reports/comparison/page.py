"""A comparison's page, `comparison.html`: one offline file, made from comparison.json."""

from __future__ import annotations

from pathlib import Path

from exchange.json_records import Record
from exchange.percentiles import FIGURES
from exchange_simulation.launching.metrics import COMPONENTS
from exchange_simulation.launching.record.noise_summary import noise_banner
from exchange_simulation.reports.comparison.answer import headline, other_answers
from exchange_simulation.reports.comparison.figures import trial_figures
from exchange_simulation.reports.comparison.paper_figures import paper_figures, published, transports
from exchange_simulation.reports.comparison.paper_values import (
    FIGURES_8_IN_WORDS,
    NOT_COMPARABLE,
    TABLE_1,
    has_nagle_at_broker_alone,
)
from exchange_simulation.reports.comparison.ratio_plot import ratio_plot
from exchange_simulation.reports.comparison.sentences import (
    circumstances,
    common_settings,
    cpu_beyond,
    cpu_metric,
    in_brackets,
    settings_by_contender,
    sureness,
    title,
)
from exchange_simulation.reports.drawing.figures import drawings
from exchange_simulation.reports.drawing.templates import templates
from exchange_simulation.reports.formats.estimates import median_text, middle_half
from exchange_simulation.reports.formats.numbers import number_text
from exchange_simulation.reports.gate_outcomes import GateOutcomes, read_outcomes
from exchange_simulation.reports.report import write_html

TEMPLATES = templates(Path(__file__).parent, rounded=median_text, middle_half=middle_half, number=number_text)
COMPLETION = {
    "due": {figure: f"due_{figure}_us" for figure in FIGURES},
    "handed_over": {figure: f"handed_over_{figure}_us" for figure in FIGURES},
}
"""By clock: the metric of each figure of completion times."""
PACKETS = {"packets_per_order": "packets an order", "packet_bytes": "mean bytes", "packet_gap_us": "mean gap, us"}
"""The metrics of the table of packets, with their columns' titles."""
CPU = {"cpu_s_per_million": "in all", **{cpu_metric(component): component for component in COMPONENTS}}
"""The metrics of the table of CPU, with their columns' titles."""
RESOURCES = {
    **{f"{component}_peak_mb": f"{component}, MB" for component in COMPONENTS},
    **{f"{component}_switches_per_order": f"{component}, switches" for component in COMPONENTS},
}
"""The metrics of the table of memory and context switches, with their columns' titles."""
SHAPE_ONLY = "Other hardware: set it beside ours for its shape only."


def page_html(record: Record, outcomes: GateOutcomes | None = None) -> str:
    """Return the page, with the outcomes of a gate if there was one. Equal records and outcomes give equal pages."""
    is_comparable = has_nagle_at_broker_alone(record)
    return TEMPLATES.get_template("comparison.html").render(
        record=record,
        title=title(record),
        circumstances=circumstances(record),
        sureness=sureness(record),
        headline=headline(record),
        noise=noise_banner(record, "runs"),
        answers=other_answers(record),
        gate=outcomes or GateOutcomes(),
        plot=ratio_plot(record),
        drawings=drawings(trial_figures(record)),
        completion=COMPLETION,
        cpu=_measured_columns(record, CPU),
        cpu_beyond=cpu_beyond,
        in_brackets=in_brackets,
        resources=_measured_columns(record, RESOURCES),
        as_in_paper=drawings(paper_figures(record)),
        published=published(record),
        transports=transports(record),
        packets=PACKETS,
        paper=TABLE_1 if is_comparable else (),
        paper_says=f"{FIGURES_8_IN_WORDS} {SHAPE_ONLY}" if is_comparable else NOT_COMPARABLE,
        settings=common_settings(record),
        own_settings=settings_by_contender(record),
    )


def write_page(folder: Path, record: Record) -> Path:
    """Write a record's page into its folder, and return the page's path."""
    return write_html(folder / "comparison.html", page_html(record, read_outcomes(folder)))


def _measured_columns(record: Record, columns: dict[str, str]) -> dict[str, str]:
    """Return the columns whose metric any arm measured."""
    measured: set[str] = set()
    for arm in record["arms"]:
        measured.update(arm["metrics"])
    return {metric: title for metric, title in columns.items() if metric in measured}
