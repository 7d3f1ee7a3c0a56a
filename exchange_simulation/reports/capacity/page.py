"""A capacity's page, `capacity.html`: one offline file, made from capacity.json, and its figures.

They are the chance of holding against the rate, and how far each probe was from the bound.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import exp
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from exchange.json_records import CapacityRecord, LoadAxis, Record
from exchange_simulation.launching.record.noise import share_words
from exchange_simulation.launching.record.reading import read_record
from exchange_simulation.reports.capacity.table import columns_of, headline, method, rounded_rate, show
from exchange_simulation.reports.drawing.canvas import empty_axes, log_y
from exchange_simulation.reports.drawing.chart import Chart, EndLabel, Numbers, label_ends, name_parts
from exchange_simulation.reports.drawing.colours import BLUE, MUTED, ORANGE
from exchange_simulation.reports.drawing.figures import Figure, drawings, write_figures
from exchange_simulation.reports.drawing.templates import templates
from exchange_simulation.reports.exports import ReportOptions, page_writer, print_report
from exchange_simulation.reports.formats.numbers import axis_number

FILE = "capacity.json"
DOTS = "Dots are probes: at 100 those that held, at 0 those that failed."
CURVE = (
    f"The curve that fits all probes, with its 95% interval. {DOTS} The vertical line is the "
    "capacity, the grey band its interval."
)
RATIO = "A dot is a probe; above 1 it broke the bound. Hollow: it failed although its figures were within their bounds."

SMALLEST_RATIO = 1e-3
BAND_OPACITY = 0.18
TEMPLATES = templates(Path(__file__).parent, percent=share_words, rounded_rate=rounded_rate)


def page_html(record: Record) -> str:
    """Return the page. Equal records give equal pages."""
    return TEMPLATES.get_template("capacity.html").render(
        record=record,
        title=headline(record),
        method=method(record),
        drawings=drawings(capacity_figures(record)),
        axis=LoadAxis.of(record),
        columns=columns_of(record),
    )


write_page = page_writer("capacity.html", page_html)
FEW_TICKS = 20
"""Rates whose largest is less than this many times the smallest have ticks at 1, 2, 5, 10 ..."""


def capacity_figures(record: Record) -> Iterator[Figure]:
    """Yield the figures that have something to show; the style of page or files must be set."""
    if not record["probes"]:
        return
    yield Figure("The chance that a probe holds", _chance(record), CURVE if record.get("curve") else DOTS, "chance")
    if any(probe.get("log_ratio") is not None for probe in record["probes"]):
        yield Figure("Each probe against the bound", _ratios(record), RATIO, "ratio")


def _chance(record: Record) -> Chart:
    axis = LoadAxis.of(record)
    axes = _axes(record, "% of probes hold")
    curve = record.get("curve", [])
    names = (axis.name, "value", "low", "high")
    rates, chances, low, high = (np.array([point[name] for point in curve]) for name in names)
    if curve:
        axes.fill_between(rates, 100 * low, 100 * high, color=BLUE, alpha=BAND_OPACITY, linewidth=0)
        name_parts("curve", axes.plot(rates, 100 * chances, color=BLUE)[0], [])
    labels = []
    for holds, text, colour in ((True, "held", BLUE), (False, "failed", ORANGE)):
        chosen = [probe[axis.name] for probe in record["probes"] if probe["holds"] is holds]
        dots = axes.plot(chosen, [100 * holds] * len(chosen), "o", color=colour, alpha=0.6, clip_on=False)
        name_parts(text, dots[0], [])
        if chosen:
            labels.append(EndLabel(100.0 * holds, text, colour))
    axes.set_ylim(-4, 104)
    axes.set_yticks([0, 25, 50, 75, 100])
    label_ends(axes, labels)
    columns = ("series", axis.name, "chance", "low", "high")
    shares = [tuple(point[name] for name in names) for point in curve]
    probes = [("probe", probe[axis.name], float(probe["holds"]), None, None) for probe in record["probes"]]
    hover = [("curve", rate, *(100 * share for share in of_rate)) for rate, *of_rate in shares]
    hover += [(_outcome(probe["holds"]), probe[axis.name]) for probe in record["probes"]]
    numbers = Numbers(columns, [*(("curve", *point) for point in shares), *probes])
    return Chart(axes, numbers, hover=Numbers(columns, hover))


def _ratios(record: Record) -> Chart:
    axis = LoadAxis.of(record)
    axes = _axes(record, "figure / bound")
    measured = [probe for probe in record["probes"] if probe.get("log_ratio") is not None]
    for holds, colour in ((True, BLUE), (False, ORANGE)):
        for within in (True, False):
            chosen = [p for p in measured if p["holds"] is holds and (p["log_ratio"] <= 0) is within]
            fill = "none" if within is not holds else colour
            x = [p[axis.name] for p in chosen]
            y = [_ratio(p) for p in chosen]
            dots = axes.plot(x, y, "o", color=colour, markerfacecolor=fill, alpha=0.8)
            name_parts(f"{_outcome(holds)} {'within' if within else 'beyond'}", dots[0], [])
    axes.axhline(1.0, color=MUTED, linewidth=1.0, linestyle="--")
    log_y(axes)
    label_ends(axes, [EndLabel(1.0, "bound", MUTED)])
    rows = [(p["run"], p[axis.name], exp(p["log_ratio"])) for p in measured]
    hover = [(_outcome(p["holds"]), p[axis.name], exp(p["log_ratio"])) for p in measured]
    columns = ("run", axis.name, "figure_over_bound")
    return Chart(axes, Numbers(columns, list(rows)), hover=Numbers(("series", *columns[1:]), list(hover)))


def _outcome(holds: bool) -> str:
    return "held" if holds else "failed"


def _ratio(probe: Record) -> float:
    """Return figure / bound, as far as the axis goes."""
    return min(max(exp(probe["log_ratio"]), SMALLEST_RATIO), 1 / SMALLEST_RATIO)


def _axes(record: Record, y_unit: str) -> Axes:
    """Return axes over the rates that were probed, with the capacity as a line and its interval as a band."""
    axis = LoadAxis.of(record)
    axes = empty_axes(y_unit, axis.unit)
    _log_rates(axes, [probe[axis.name] for probe in record["probes"]])
    if capacity := axis.capacity(record):
        if capacity["low"] is not None:
            axes.axvspan(capacity["low"], capacity["high"], color=MUTED, alpha=BAND_OPACITY, linewidth=0)
        axes.axvline(capacity["value"], color=MUTED, linewidth=1.3)
        axes.text(
            capacity["value"],
            1.03,
            rounded_rate(capacity["value"]),
            color=MUTED,
            ha="center",
            va="bottom",
            transform=axes.get_xaxis_transform(),
        )
    return axes


def _log_rates(axes: Axes, rates: list[float]) -> None:
    axes.set_xscale("log")
    axes.set_xlim(min(rates) / 1.15, max(rates) * 1.15)
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if max(rates) / min(rates) < FEW_TICKS else (1.0,)))
    axes.xaxis.set_major_formatter(FuncFormatter(axis_number))
    axes.xaxis.set_minor_formatter(NullFormatter())


def report_capacity(folder: Path, options: ReportOptions) -> int:
    """Make a capacity's table, page and figure files from its record. Returns the exit code, 0."""
    record = read_record(folder / FILE, CapacityRecord)
    return print_report(
        folder,
        "capacity",
        record,
        record["probes"],
        options,
        show,
        write_page,
        lambda: write_figures(folder, capacity_figures(record)),
    )
