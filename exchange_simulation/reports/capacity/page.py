"""A capacity's page, `capacity.html`: one offline file, made from capacity.json, and its figures.

One figure shows the chance of holding against the rate, the other how far each probe was from the bound.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import exp
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from exchange.json_records import Record
from exchange.load_axis import LoadAxis
from exchange.record_kinds import CapacityRecord
from exchange_simulation.launching.record.noise import share_words
from exchange_simulation.launching.record.noise_summary import noise_banner
from exchange_simulation.launching.record.reading import read_record
from exchange_simulation.reports.capacity.table import columns_of, headline, method, rounded_rate, show
from exchange_simulation.reports.drawing.canvas import empty_axes, log_y
from exchange_simulation.reports.drawing.chart import Cell, Chart, EndLabel, Numbers, label_ends, name_parts
from exchange_simulation.reports.drawing.colours import BLUE, MUTED, ORANGE
from exchange_simulation.reports.drawing.figures import Figure, drawings, write_figures
from exchange_simulation.reports.drawing.templates import templates
from exchange_simulation.reports.formats.numbers import axis_number
from exchange_simulation.reports.report import ReportOptions, print_report, write_html

FILE = "capacity.json"
DOTS = "Dots are probes: at 100 those that held, at 0 those that failed."
CURVE = (
    f"The curve that fits all probes, with its 95% interval. {DOTS} The vertical line is the "
    "capacity, the grey band its interval."
)
RATIO = "A dot is a probe; above 1 it broke the bound. Hollow: it failed although its figures were within their bounds."

SMALLEST_RATIO = 1e-3
BAND_OPACITY = 0.18
FINE_TICKS_BELOW = 20
"""If the highest rate is less than this many times the lowest, the axis also has ticks at 2 and 5."""
TEMPLATES = templates(Path(__file__).parent, percent=share_words, rounded_rate=rounded_rate)


def page_html(record: Record) -> str:
    """Return the page. Equal records give equal pages."""
    return TEMPLATES.get_template("capacity.html").render(
        record=record,
        title=headline(record),
        noise=noise_banner(record, "probes"),
        method=method(record),
        drawings=drawings(capacity_figures(record)),
        axis=LoadAxis.of(record),
        columns=columns_of(record),
    )


def write_page(folder: Path, record: Record) -> Path:
    """Write a record's page into its folder, and return the page's path."""
    return write_html(folder / "capacity.html", page_html(record))


def capacity_figures(record: Record) -> Iterator[Figure]:
    """Yield the figures that have something to show. They are drawn while they are iterated: set a page style first."""
    if not record["probes"]:
        return
    yield Figure("The chance that a probe holds", _chance(record), CURVE if record.get("curve") else DOTS, "chance")
    if any(probe.get("log_ratio") is not None for probe in record["probes"]):
        yield Figure("Each probe against the bound", _ratios(record), RATIO, "ratio")


def _chance(record: Record) -> Chart:
    """Draw the chance of holding by rate: the fitted curve with its interval, and the probes at 0 and 100 %."""
    axis = LoadAxis.of(record)
    axes = _axes(record, "% of probes hold")
    curve = record.get("curve", [])
    if curve:
        rates = [point[axis.name] for point in curve]
        chances = [100 * point["value"] for point in curve]
        lows = [100 * point["low"] for point in curve]
        highs = [100 * point["high"] for point in curve]
        axes.fill_between(rates, lows, highs, color=BLUE, alpha=BAND_OPACITY, linewidth=0)
        name_parts("curve", axes.plot(rates, chances, color=BLUE)[0], [])
    labels = []
    for holds, percent, colour in ((True, 100.0, BLUE), (False, 0.0, ORANGE)):
        rates = [probe[axis.name] for probe in record["probes"] if probe["holds"] is holds]
        dots = axes.plot(rates, [percent] * len(rates), "o", color=colour, alpha=0.6, clip_on=False)
        name_parts(_outcome(holds), dots[0], [])
        if rates:
            labels.append(EndLabel(percent, _outcome(holds), colour))
    axes.set_ylim(-4, 104)
    axes.set_yticks([0, 25, 50, 75, 100])
    label_ends(axes, labels)
    return _chance_chart(record, axes)


def _chance_chart(record: Record, axes: Axes) -> Chart:
    """Return the chart of chances. Its numbers are shares from 0 to 1; the pointer shows percent."""
    axis = LoadAxis.of(record)
    numbers: list[tuple[Cell, ...]] = []
    hover: list[tuple[Cell, ...]] = []
    for point in record.get("curve", []):
        rate = point[axis.name]
        numbers.append(("curve", rate, point["value"], point["low"], point["high"]))
        hover.append(("curve", rate, 100 * point["value"], 100 * point["low"], 100 * point["high"]))
    for probe in record["probes"]:
        rate = probe[axis.name]
        numbers.append(("probe", rate, float(probe["holds"]), None, None))
        hover.append((_outcome(probe["holds"]), rate))
    columns = ("series", axis.name, "chance", "low", "high")
    return Chart(axes, Numbers(columns, numbers), hover=Numbers(columns, hover))


def _ratios(record: Record) -> Chart:
    """Draw the figure of each probe over its bound."""
    axis = LoadAxis.of(record)
    axes = _axes(record, "figure / bound")
    measured = [probe for probe in record["probes"] if probe.get("log_ratio") is not None]
    for holds, colour in ((True, BLUE), (False, ORANGE)):
        for is_within in (True, False):
            probes = [probe for probe in measured if probe["holds"] is holds and _is_within_bound(probe) is is_within]
            # Hollow: the bound did not decide. A probe within it failed by another condition, or one beyond it held.
            is_decided_by_bound = holds == is_within
            fill = colour if is_decided_by_bound else "none"
            rates = [probe[axis.name] for probe in probes]
            ratios = [_drawn_ratio(probe) for probe in probes]
            dots = axes.plot(rates, ratios, "o", color=colour, markerfacecolor=fill, alpha=0.8)
            name_parts(f"{_outcome(holds)} {'within' if is_within else 'beyond'}", dots[0], [])
    axes.axhline(1.0, color=MUTED, linewidth=1.0, linestyle="--")
    log_y(axes)
    label_ends(axes, [EndLabel(1.0, "bound", MUTED)])
    numbers: list[tuple[Cell, ...]] = []
    hover: list[tuple[Cell, ...]] = []
    for probe in measured:
        ratio = exp(probe["log_ratio"])
        numbers.append((probe["run"], probe[axis.name], ratio))
        hover.append((_outcome(probe["holds"]), probe[axis.name], ratio))
    return Chart(
        axes,
        Numbers(("run", axis.name, "figure_over_bound"), numbers),
        hover=Numbers(("series", axis.name, "figure_over_bound"), hover),
    )


def _outcome(holds: bool) -> str:
    return "held" if holds else "failed"


def _is_within_bound(probe: Record) -> bool:
    return bool(probe["log_ratio"] <= 0)


def _drawn_ratio(probe: Record) -> float:
    """Return figure / bound; a ratio beyond the axis is drawn at the axis' end."""
    ratio = exp(probe["log_ratio"])
    if ratio < SMALLEST_RATIO:
        return SMALLEST_RATIO
    return min(ratio, 1 / SMALLEST_RATIO)


def _axes(record: Record, y_unit: str) -> Axes:
    """Return axes over the rates that were probed, with the capacity as a line and its interval as a band."""
    axis = LoadAxis.of(record)
    axes = empty_axes(y_unit, axis.unit)
    _log_rates(axes, [probe[axis.name] for probe in record["probes"]])
    capacity = axis.capacity(record)
    if capacity:
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
    has_fine_ticks = max(rates) / min(rates) < FINE_TICKS_BELOW
    ticks = (1.0, 2.0, 5.0) if has_fine_ticks else (1.0,)
    axes.xaxis.set_major_locator(LogLocator(subs=ticks))
    axes.xaxis.set_major_formatter(FuncFormatter(axis_number))
    axes.xaxis.set_minor_formatter(NullFormatter())


def report_capacity(folder: Path, options: ReportOptions) -> int:
    """Make a capacity's table, page and figure files from its record. Returns the exit code, 0."""
    record = read_record(folder / FILE, CapacityRecord)
    return print_report(
        folder,
        "capacity",
        record,
        json_value=record["probes"],
        csv_rows=record["probes"],
        options=options,
        show=show,
        write_page=write_page,
        write_figures=lambda: write_figures(folder, capacity_figures(record)),
    )
