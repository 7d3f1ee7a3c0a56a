"""Draws a benchmark's plots, laid out as the papers': a line for each transport, both axes logarithmic."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from exchange.grouping import grouped
from exchange_simulation.messaging.benchmark import BenchmarkDefinition
from exchange_simulation.messaging.benchmarks import benchmark_of
from exchange_simulation.messaging.paper import Published
from exchange_simulation.messaging.point import size_in_words, value_in_words
from exchange_simulation.messaging.presentation import Plot
from exchange_simulation.reports.drawing.canvas import empty_axes, linear_x, linear_y, log_x, log_y, time_x
from exchange_simulation.reports.drawing.chart import (
    Chart,
    EndLabel,
    Numbers,
    WhiskerPoint,
    draw,
    draw_medians,
    label_ends,
    level,
    name_parts,
)
from exchange_simulation.reports.drawing.colours import MUTED, line_colours
from exchange_simulation.reports.drawing.figures import Drawing, Figure, drawings
from exchange_simulation.reports.formats.numbers import axis_number

STYLES = ("-", ":")
MOST_LINES = 8
"""A figure has no more lines; half of them are dotted."""
Row = dict[str, Any]


def drawings_of(record: Mapping[str, Any]) -> list[Drawing]:
    """Draw the figures that have something to show."""
    return drawings(figures_of(record))


def figures_of(record: Mapping[str, Any]) -> Iterator[Figure]:
    """Figures of a benchmark, or of all of a suite's, in matplotlib's current style."""
    for part in record.get("parts", [record]):
        yield from _figures(benchmark_of(part["benchmark"]), part["rows"])


def _figures(benchmark: BenchmarkDefinition, rows: Sequence[Row]) -> Iterator[Figure]:
    over_time = list(_seconds_as_rows(rows)) if benchmark.plots_over_time else []
    rows = [*rows, *benchmark.derived_rows(rows)]
    for plot in (*benchmark.plots, *benchmark.plots_over_time):
        measured = [
            row
            for row in _a_row_for_each_figure(plot, over_time if plot in benchmark.plots_over_time else rows)
            if plot.x in row["point"] and plot.where.items() <= row["point"].items()
        ]
        if len({row["point"][plot.x] for row in measured}) < 2:
            continue  # one value makes no curve: the table has it
        drawn = _turned(plot, measured)
        for words, own in _readable(drawn, measured, _common_transport(drawn, measured)).items():
            yield Figure(f"{benchmark.name}: {plot.title}{words}", _chart(drawn, own), plot.caption)


def _turned(plot: Plot, rows: list[Row]) -> Plot:
    """The plot along the size, where that makes fewer lines and along x they are too many, as from 1 B to 1 MiB."""
    by_size = replace(plot, x="size_bytes", x_unit="", linear=False)
    lines = len(_lines(plot, rows))
    return by_size if lines > max(MOST_LINES, len(_lines(by_size, rows))) else plot


def _seconds_as_rows(rows: Sequence[Row]) -> Iterator[Row]:
    """A row for each second of each cell's last repeat."""
    for row in rows:
        for second in (row["repeats"] or [{}])[-1].get("series", ()):
            figures = {name: {"median": value, "low": None, "high": None} for name, value in second.items()}
            yield {**row, "point": {**row["point"], "second": second["second"]}, "figures": figures}


def _a_row_for_each_figure(plot: Plot, rows: Sequence[Row]) -> Iterator[Row]:
    """The rows; if the plot draws several figures, each row once for each of them."""
    for name, line in (plot.series or {plot.figure: ""}).items():
        for row in rows:
            if name in row["figures"]:
                point = {"line": line, **row["point"]} if plot.series else row["point"]
                yield {**row, "point": point, "figures": {plot.figure: row["figures"][name]}}


def _chart(plot: Plot, rows: list[Row]) -> Chart:
    axes = empty_axes(plot.unit, plot.x_unit or plot.x.rpartition("_")[2])
    lines = _lines(plot, rows)
    looks = _looks({name: own[0]["transport"] for name, own in lines.items()})
    labels = [_line(axes, plot, name, own, *looks[name]) for name, own in lines.items()]
    for published in plot.published:
        if published.level is not None:
            labels.append(draw(axes, level(published.level), text="the paper", colour=MUTED))
        if published.points:
            labels.append(_published_line(axes, published, max(float(row["point"][plot.x]) for row in rows)))
    _x_axis(axes, plot, sorted({float(row["point"][plot.x]) for row in rows}))
    if plot.linear and not plot.log_y:
        linear_y(axes)
    else:
        log_y(axes)
    label_ends(axes, labels)
    numbers = _numbers(plot, lines)
    return Chart(axes, numbers, hover=numbers)


def _looks(transports: dict[str, str]) -> dict[str, tuple[str, str]]:
    """Colour and style of each line: a transport's colour is its own, further lines get the colours that are left."""
    half = MOST_LINES // len(STYLES)
    names = list(transports)
    parts = [{name: transports[name] for name in names[at : at + half]} for at in range(0, len(names), half)]
    return {
        name: (colour, style)
        for part, style in zip(parts, STYLES, strict=False)
        for name, colour in line_colours(part).items()
    }


def _published_line(axes: Axes, published: Published, last: float) -> EndLabel:
    """Draw the paper's line as far as ours goes."""
    x, y = np.array(published.points).T
    end = min(last, float(x[-1]))
    shown = np.append(x[x < end], end)
    (line,) = axes.plot(shown, np.interp(shown, x, y), color=MUTED, linestyle="--", linewidth=1.3)
    name_parts(f"the paper, {published.title}", line, [])
    return EndLabel(float(np.interp(end, x, y)), f"the paper, {published.title}", MUTED)


def _readable(plot: Plot, rows: list[Row], words: str) -> dict[str, list[Row]]:
    """Divide rows into figures of few lines, by what follows the title: one for each value of what differs.

    The result is empty if nothing was measured.
    """
    if len(_lines(plot, rows)) <= MOST_LINES:
        return {words: rows} if rows else {}
    parts = grouped(rows, lambda row: _word(*_differing(plot, rows, row)[0]))
    return {key: own for word, part in parts.items() for key, own in _readable(plot, part, f"{words}, {word}").items()}


def _lines(plot: Plot, rows: list[Row]) -> dict[str, list[Row]]:
    """Rows by line. A single point beside lines is left out: it belongs to another measurement and is in the table."""
    lines = grouped(
        rows, lambda row: ", ".join(_word(*each) for each in _differing(plot, rows, row)) or row["transport"]
    )
    longest = max(map(len, lines.values()), default=0)
    return {name: own for name, own in lines.items() if len(own) > 1 or longest == 1}


def _common_transport(plot: Plot, rows: list[Row]) -> str:
    """The transport, if several lines are over the same one, which their names then leave out."""
    transports = {row["transport"] for row in rows}
    return f", {transports.pop()}" if len(transports) == 1 and len(_lines(plot, rows)) > 1 else ""


def _differing(plot: Plot, rows: list[Row], row: Row) -> list[tuple[str, Any]]:
    """Names and values in which the rows differ, besides x: the transport, and what points hold."""
    all_of = [{"transport": each["transport"], **each["point"]} for each in rows]
    return [
        (name, value)
        for name, value in {"transport": row["transport"], **row["point"]}.items()
        if name != plot.x and len({str(each.get(name)) for each in all_of}) > 1
    ]


def _word(name: str, value: Any) -> str:
    """A point's value with its unit.

    For example: 64 B; 4 pairs; indexed
    """
    return value if isinstance(value, str) else value_in_words(name, value)


def _line(axes: Axes, plot: Plot, name: str, rows: list[Row], colour: str, style: str) -> EndLabel:
    rows = sorted(rows, key=lambda row: float(row["point"][plot.x]))
    x = np.array([float(row["point"][plot.x]) for row in rows])
    points = [_whisker_point(row["figures"][plot.figure]) for row in rows]
    return draw_medians(axes, x, points, name, colour, style)


def _whisker_point(estimate: Mapping[str, Any]) -> WhiskerPoint:
    """Return the median with its interval; with too few repeats for an interval, both ends are the median."""
    median = estimate["median"]
    low = median if estimate["low"] is None else estimate["low"]
    high = median if estimate["high"] is None else estimate["high"]
    return WhiskerPoint(median, low, high)


def _x_axis(axes: Axes, plot: Plot, values: list[float]) -> None:
    in_words = _short_size if plot.x.endswith("_bytes") else axis_number
    if plot.x == "second":
        time_x(axes, values[-1])
    elif plot.linear:
        linear_x(axes, values, in_words)
    else:
        log_x(axes, values, in_words)


def _short_size(value: float, _position: int | None = None) -> str:
    """A size as a tick of an axis.

    For example: 1, 4Ki, 1Mi
    """
    return size_in_words(round(value)).removesuffix("B").replace(" ", "")


def _numbers(plot: Plot, lines: Mapping[str, list[Row]]) -> Numbers:
    columns = ("series", plot.x, *(f"{plot.figure}_{end}" for end in ("median", "low", "high")))
    return Numbers(
        columns,
        [
            (name, row["point"][plot.x], *(row["figures"][plot.figure][end] for end in ("median", "low", "high")))
            for name, own in lines.items()
            for row in own
        ],
    )
