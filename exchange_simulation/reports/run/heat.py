"""Every completion over the run as a heat map: a pause, and the orders that waited behind it, make a plume."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.patches import Rectangle
from matplotlib.ticker import FixedLocator, FuncFormatter

from exchange.json_records import Record
from exchange.measurements import BUCKETS
from exchange_simulation.reports.drawing.canvas import empty_axes, time_x
from exchange_simulation.reports.drawing.chart import Cell, Chart, Floats, Numbers
from exchange_simulation.reports.drawing.colours import MUTED
from exchange_simulation.reports.formats.numbers import axis_number
from exchange_simulation.reports.run.completion import BUCKETS_PER_CELL, CELLS_PER_OCTAVE, analysed_payloads
from exchange_simulation.reports.run.run_folder import (
    RunFolder,
    axis_length_s,
    has_charts_over_time,
    run_colour,
    seconds_per_point,
)

MOST_COLUMNS = 150
"""With this many columns, each is two pixels wide."""
FAINTEST = 0.2
"""The opacity of one order: visible on white and on black."""
SWATCH_HEIGHT = 0.055
"""In shares of the axes' height; so is SWATCH_STEP, from one swatch to the next."""
SWATCH_STEP = 0.085
FINE_TICKS_BELOW = 2.6
"""If the axis spans fewer decades, it also has ticks at 2 and 5."""


@dataclass(frozen=True)
class HeatMap:
    """Orders by time taken and by time of the run.

    `counts` has shape (rows, columns): a row for each cell of the time taken, of which there are CELLS_PER_OCTAVE in an
    octave, and a column for every `point_s` seconds of the run. Row 0 is cell `lowest_cell`; cell 0 begins at 1 ns.
    """

    counts: npt.NDArray[np.int64]
    lowest_cell: int
    point_s: int

    @property
    def edges_us(self) -> Floats:
        """Return the edges of the rows, one more than there are rows."""
        cells = self.lowest_cell + np.arange(len(self.counts) + 1)
        return np.asarray(np.exp2(cells / CELLS_PER_OCTAVE) / 1e3, np.float64)


def heat(folder: RunFolder) -> Chart | None:
    """Draw the heat map; None if nothing was measured, or the run is too short."""
    grid = heat_map(folder.spool["completion"], seconds_per_point(folder.spool, MOST_COLUMNS))
    if grid is None or not has_charts_over_time(folder):
        return None
    axes = empty_axes("µs", "seconds")
    tint = run_colour(folder.run)
    axes.grid(visible=False)
    _draw_cells(axes, grid, tint)
    _log_ticks(axes, grid.edges_us)
    time_x(axes, axis_length_s(folder))
    _draw_scale(axes, int(grid.counts.max()), tint)
    return Chart(axes, _numbers(grid), tint, cells=_cells(grid))


def heat_map(completions: list[Record], point_s: int) -> HeatMap | None:
    """Count completion times from due, or from handing over if nothing was due; with the warm-up, but no last order."""
    payloads = analysed_payloads(completions, "due") or analysed_payloads(completions, "handed_over")
    if not payloads:
        return None
    columns = [int(payload["second"]) // point_s for payload in payloads]
    counts = np.zeros((BUCKETS // BUCKETS_PER_CELL, max(columns) + 1), np.int64)
    for column, payload in zip(columns, payloads, strict=True):
        cells = np.asarray(payload["bucket"], np.int64) // BUCKETS_PER_CELL
        np.add.at(counts[:, column], cells, payload["bucket_count"])
    used_cells = np.flatnonzero(counts.any(axis=1))
    lowest_cell = int(used_cells[0])
    highest_cell = int(used_cells[-1])
    return HeatMap(counts[lowest_cell : highest_cell + 1], lowest_cell, point_s)


def _draw_cells(axes: Axes, grid: HeatMap, tint: str) -> None:
    """Draw an image with a pixel for each cell: thousands of rectangles would outweigh the page."""
    rgba = np.empty((*grid.counts.shape, 4))
    rgba[..., :3] = to_rgb(tint)
    rgba[..., 3] = opacity(grid.counts, int(grid.counts.max()))
    low, high = np.log10(grid.edges_us[[0, -1]])
    extent = (0.0, float(grid.counts.shape[1] * grid.point_s), float(low), float(high))
    axes.imshow(rgba, origin="lower", extent=extent, aspect="auto", interpolation="none")


def opacity(counts: npt.ArrayLike, most: int) -> Floats:
    """Return an opacity proportional to the logarithm of the count; 0 for no order."""
    shares = np.log(np.maximum(counts, 1)) / np.log(max(most, 2))
    return np.asarray(np.where(np.asarray(counts) > 0, FAINTEST + (1 - FAINTEST) * shares, 0.0), np.float64)


def _log_ticks(axes: Axes, edges_us: Floats) -> None:
    """Label an axis of logarithms: an image has rows of one height, so the axis itself is linear."""
    low, high = np.log10(edges_us[[0, -1]])
    steps = (1.0, 2.0, 5.0) if high - low < FINE_TICKS_BELOW else (1.0,)
    ticks = np.add.outer(np.arange(-4, 12), np.log10(steps)).ravel()
    axes.yaxis.set_major_locator(FixedLocator([tick for tick in ticks if low <= tick <= high]))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda tick, _: axis_number(round(10.0**tick, 4))))


def _draw_scale(axes: Axes, most: int, tint: str) -> None:
    """Draw the shades beside the axes with their counts: the greatest, and the decades below it."""
    counts = [most]
    for power in range(9, -1, -1):
        if 10**power <= most / 2:
            counts.append(10**power)
    axes.text(1.035, 1.0, "orders", color=MUTED, transform=axes.transAxes, va="top")
    for place, count in enumerate(counts, start=2):
        bottom = 1.0 - place * SWATCH_STEP
        shade = (tint, float(opacity(count, most)))
        swatch = Rectangle((1.035, bottom), 0.045, SWATCH_HEIGHT, linewidth=0, transform=axes.transAxes, clip_on=False)
        swatch.set_facecolor(shade)
        axes.add_patch(swatch)
        middle = bottom + SWATCH_HEIGHT / 2
        axes.text(1.1, middle, axis_number(count), color=MUTED, transform=axes.transAxes, va="center")


def _cells(grid: HeatMap) -> dict[str, Any]:
    """Return for the pointer the first row with an order in each column, and the counts of the rows from there on."""
    low, high = np.log10(grid.edges_us[[0, -1]]).tolist()
    columns: list[list[int]] = []
    for counts in grid.counts.T:
        used_rows = np.flatnonzero(counts)
        if len(used_rows):
            first = int(used_rows[0])
            last = int(used_rows[-1])
            columns.append([first, *counts[first : last + 1].tolist()])
        else:
            columns.append([])
    return {"step": grid.point_s, "low": low, "high": high, "rows": len(grid.counts), "columns": columns}


def _numbers(grid: HeatMap) -> Numbers:
    """Return a row for every cell that holds an order."""
    edges_us = grid.edges_us.tolist()
    numbers: list[tuple[Cell, ...]] = []
    for column, counts in enumerate(grid.counts.T):
        begin_s = column * grid.point_s
        end_s = begin_s + grid.point_s
        for row in np.flatnonzero(counts).tolist():
            numbers.append((begin_s, end_s, edges_us[row], edges_us[row + 1], int(counts[row])))
    return Numbers(("from_second", "to_second", "from_us", "to_us", "orders"), numbers)
