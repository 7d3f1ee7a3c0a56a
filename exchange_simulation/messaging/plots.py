"""Draws a benchmark's plots, laid out as in the papers: a line for each transport, both axes logarithmic."""

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
from exchange_simulation.messaging.point import NETWORK, size_in_words, value_in_words
from exchange_simulation.messaging.presentation import Plot
from exchange_simulation.reports.drawing.canvas import empty_axes, linear_x, linear_y, log_x, log_y, separate_x, time_x
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

LINE_STYLES = ("-", ":")
MOST_LINES = 8
"""The largest number of lines in a figure; half of them are solid, and the others dotted."""
SIZE = "size_bytes"
Row = dict[str, Any]


def drawings_of(record: Mapping[str, Any]) -> list[Drawing]:
    """Draw the figures of a benchmark or of a suite."""
    return drawings(figures_of(record))


def figures_of(record: Mapping[str, Any], *, with_published: bool = True) -> Iterator[Figure]:
    """Yield the figures of a benchmark, or of all benchmarks of a suite, in matplotlib's current style.

    `with_published`: the figures have the lines of the benchmark's paper.
    """
    for part in record.get("parts", [record]):
        benchmark = benchmark_of(part["benchmark"])
        if not with_published:
            benchmark = replace(benchmark, plots=[replace(plot, published=()) for plot in benchmark.plots])
        yield from _figures(benchmark, part["rows"])


def _figures(benchmark: BenchmarkDefinition, rows: Sequence[Row]) -> Iterator[Figure]:
    """Yield the figures of one benchmark."""
    all_rows = [*rows, *benchmark.derived_rows(rows)]
    for plot in benchmark.plots:
        yield from _figures_of_plot(benchmark, plot, all_rows)
    if benchmark.plots_over_time:
        rows_of_seconds = list(_seconds_as_rows(rows))
        for plot in benchmark.plots_over_time:
            yield from _figures_of_plot(benchmark, plot, rows_of_seconds)


def _figures_of_plot(benchmark: BenchmarkDefinition, plot: Plot, rows: Sequence[Row]) -> Iterator[Figure]:
    """Yield a plot's figures: several if it has too many lines, none if the rows make no curve."""
    drawn_rows = [
        row
        for row in _a_row_for_each_figure(plot, rows)
        if plot.x in row["point"] and plot.where.items() <= row["point"].items()
    ]
    if len({row["point"][plot.x] for row in drawn_rows}) < 2:
        return  # one value makes no curve, and stands in the table
    drawn_plot = _along_fewer_lines(plot, drawn_rows)
    drawn_rows = [row for row in drawn_rows if drawn_plot.x in row["point"]]
    title_end_of_all = _title_end_of_common_transport(drawn_plot, drawn_rows)
    parts = _rows_by_title_end(drawn_plot, drawn_rows, title_end_of_all)
    for title_end, rows_of_part in parts.items():
        yield Figure(f"{benchmark.name}: {plot.title}{title_end}", _chart(drawn_plot, rows_of_part), plot.caption)


def _along_fewer_lines(plot: Plot, rows: list[Row]) -> Plot:
    """The plot; or the plot along the size, if x makes more than MOST_LINES lines and several sizes make fewer.

    The plot along the size leaves out rows without a size.
    """
    rows_with_size = [row for row in rows if SIZE in row["point"]]
    sizes = {row["point"][SIZE] for row in rows_with_size}
    if len(sizes) < 2:
        return plot
    by_size = replace(plot, x=SIZE, x_unit="", linear=False)
    lines = len(_lines(plot, rows))
    if lines > MOST_LINES and lines > len(_lines(by_size, rows_with_size)):
        return by_size
    return plot


def _seconds_as_rows(rows: Sequence[Row]) -> Iterator[Row]:
    """A row for each second of each cell's last repeat."""
    for row in rows:
        if not row["repeats"]:
            continue
        last_repeat = row["repeats"][-1]
        for second in last_repeat.get("series", ()):
            figures = {name: {"median": value, "low": None, "high": None} for name, value in second.items()}
            yield {**row, "point": {**row["point"], "second": second["second"]}, "figures": figures}


def _a_row_for_each_figure(plot: Plot, rows: Sequence[Row]) -> Iterator[Row]:
    """The rows with the plot's figure; if the plot draws several figures, each row once for each of them."""
    if not plot.series:
        for row in rows:
            if plot.figure in row["figures"]:
                yield {**row, "figures": {plot.figure: row["figures"][plot.figure]}}
    for figure, line in plot.series.items():
        for row in rows:
            if figure in row["figures"]:
                point = {"line": line, **row["point"]}
                yield {**row, "point": point, "figures": {plot.figure: row["figures"][figure]}}


def _chart(plot: Plot, rows: list[Row]) -> Chart:
    unit_in_name = plot.x.rpartition("_")[2]  # bytes, in size_bytes
    axes = empty_axes(plot.unit, plot.x_unit or unit_in_name)
    lines = _lines(plot, rows)
    looks = _looks({name: rows_of_line[0]["transport"] for name, rows_of_line in lines.items()})
    x_values = sorted({float(row["point"][plot.x]) for row in rows})
    labels: list[EndLabel] = []
    for name, rows_of_line in lines.items():
        colour, style = looks[name]
        if plot.separate:
            style = "none"
        labels.append(_line(axes, plot, name, rows_of_line, colour, style))
    for published in plot.published:
        if published.level is not None:
            labels.append(draw(axes, level(published.level), text=published.level_label, colour=MUTED))
        if published.points:
            labels.append(_published_line(axes, published, x_values[-1]))
    _x_axis(axes, plot, x_values)
    if plot.linear and not plot.log_y:
        linear_y(axes)
    else:
        log_y(axes)
    label_ends(axes, labels)
    numbers = _numbers(plot, lines)
    return Chart(axes, numbers, hover=numbers)


def _looks(transports: dict[str, str]) -> dict[str, tuple[str, str]]:
    """Colour and style of each line, by its name; `transports` are the lines' transports.

    The first line over a transport has the transport's colour. No two lines have the same colour.
    """
    lines_per_style = MOST_LINES // len(LINE_STYLES)
    looks: dict[str, tuple[str, str]] = {}
    for number, (name, colour) in enumerate(line_colours(transports).items()):
        looks[name] = (colour, LINE_STYLES[number // lines_per_style])
    return looks


def _published_line(axes: Axes, published: Published, last: float) -> EndLabel:
    """Draw the paper's line up to `last`, the largest x of our lines."""
    x, y = np.array(published.points).T
    end = min(last, float(x[-1]))
    shown = np.append(x[x < end], end)
    (line,) = axes.plot(shown, np.interp(shown, x, y), color=MUTED, linestyle="--", linewidth=1.3)
    name_parts(f"the paper, {published.title}", line, [])
    return EndLabel(float(np.interp(end, x, y)), f"the paper, {published.title}", MUTED)


def _rows_by_title_end(plot: Plot, rows: list[Row], title_end: str) -> dict[str, list[Row]]:
    """Divide rows into figures of at most MOST_LINES lines; returns the rows of each figure by the end of its title.

    A figure with too many lines is divided by the network, as the papers' figures are; if its lines do not differ in
    that, by the first value in which they do. `title_end` is the end of the title before the division; the rows that
    lack all such values keep it.
    """
    if not rows:
        return {}
    if len(_lines(plot, rows)) <= MOST_LINES:
        return {title_end: rows}

    def dividing_word(row: Row) -> str:
        differing = dict(_differing(plot, rows, row))
        if not differing:
            return ""
        name = NETWORK if NETWORK in differing else next(iter(differing))
        return _word(name, differing[name])

    rows_by_title_end: dict[str, list[Row]] = {}
    for word, rows_of_word in grouped(rows, dividing_word).items():
        title_end_of_word = f"{title_end}, {word}" if word else title_end
        rows_by_title_end.update(_rows_by_title_end(plot, rows_of_word, title_end_of_word))
    return rows_by_title_end


def _lines(plot: Plot, rows: list[Row]) -> dict[str, list[Row]]:
    """Rows by the name of their line.

    A single point beside lines is left out: it belongs to another measurement, and stands in the table.
    """

    def line_name(row: Row) -> str:
        words = [_word(name, value) for name, value in _differing(plot, rows, row)]
        return ", ".join(words) or str(row["transport"])

    lines = grouped(rows, line_name)
    longest = max(map(len, lines.values()), default=0)
    if longest == 1:
        return lines
    return {name: rows_of_line for name, rows_of_line in lines.items() if len(rows_of_line) > 1}


def _title_end_of_common_transport(plot: Plot, rows: list[Row]) -> str:
    """The end of the title that names the transport, if several lines share it; the lines' names then leave it out."""
    transports = {row["transport"] for row in rows}
    if len(transports) != 1 or len(_lines(plot, rows)) < 2:
        return ""
    return f", {transports.pop()}"


def _differing(plot: Plot, rows: list[Row], row: Row) -> list[tuple[str, Any]]:
    """The row's transport and values of its point in which the rows differ, without x, as (name, value)."""
    points = [{"transport": other["transport"], **other["point"]} for other in rows]
    differing: list[tuple[str, Any]] = []
    for name, value in {"transport": row["transport"], **row["point"]}.items():
        values = {str(point.get(name)) for point in points}
        if name != plot.x and len(values) > 1:
            differing.append((name, value))
    return differing


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
    elif plot.separate:
        separate_x(axes, values)
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
    """The numbers that a plot draws, for its CSV."""
    columns = ("series", plot.x, f"{plot.figure}_median", f"{plot.figure}_low", f"{plot.figure}_high")
    rows: list[tuple[str | int | float | None, ...]] = []
    for name, rows_of_line in lines.items():
        for row in rows_of_line:
            estimate = row["figures"][plot.figure]
            rows.append((name, row["point"][plot.x], estimate["median"], estimate["low"], estimate["high"]))
    return Numbers(columns, rows)
