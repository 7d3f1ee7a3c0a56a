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
from exchange_simulation.reports.drawing.chart import Chart, Floats, Numbers
from exchange_simulation.reports.drawing.colours import MUTED
from exchange_simulation.reports.formats.numbers import axis_number
from exchange_simulation.reports.run.completion import BUCKETS_PER_CELL, CELLS_PER_OCTAVE, of_clock
from exchange_simulation.reports.run.run_folder import RunFolder, is_long_enough, run_colour, seconds_per_point, span_s

MOST_COLUMNS = 150  # two pixels each
FAINTEST = 0.2  # opacity of one order: visible on white and on black
SWATCH, SWATCH_STEP = 0.055, 0.085  # of the axes' height
FEW_DECADES = 2.6


@dataclass(frozen=True)
class HeatMap:
    """Orders by time taken and by time of the run.

    `counts` has shape (rows, columns): a row for each step of the time taken, the first of which is step `lowest`, and
    a column for every `point_s` seconds of the run.
    """

    counts: npt.NDArray[np.int64]
    lowest: int
    point_s: int

    @property
    def edges_us(self) -> Floats:
        """Return the edges of the rows, one more than there are rows."""
        steps = self.lowest + np.arange(len(self.counts) + 1)
        return np.asarray(np.exp2(steps / CELLS_PER_OCTAVE) / 1e3, np.float64)


def heat(folder: RunFolder) -> Chart | None:
    grid = heat_map(folder.spool["completion"], seconds_per_point(folder.spool, MOST_COLUMNS))
    if grid is None or not is_long_enough(folder):
        return None
    axes = empty_axes("µs", "seconds")
    tint = run_colour(folder.run)
    axes.grid(visible=False)
    _draw_cells(axes, grid, tint)
    _log_ticks(axes, grid.edges_us)
    time_x(axes, span_s(folder))
    _draw_scale(axes, int(grid.counts.max()), tint)
    return Chart(axes, _numbers(grid), tint, cells=_cells(grid))


def heat_map(completions: list[Record], point_s: int) -> HeatMap | None:
    """Count completion times from due, or from handing over if nothing was due; with the warm-up, but no last order."""
    chosen = of_clock(completions, "due") or of_clock(completions, "handed_over")
    if not chosen:
        return None
    points = [int(payload["second"]) // point_s for payload in chosen]
    counts = np.zeros((BUCKETS // BUCKETS_PER_CELL, max(points) + 1), np.int64)
    for point, payload in zip(points, chosen, strict=True):
        cells = np.asarray(payload["bucket"], np.int64) // BUCKETS_PER_CELL
        np.add.at(counts[:, point], cells, payload["bucket_count"])
    used = np.flatnonzero(counts.any(axis=1))
    return HeatMap(counts[used[0] : used[-1] + 1], int(used[0]), point_s)


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
    steps = (1.0, 2.0, 5.0) if high - low < FEW_DECADES else (1.0,)
    ticks = [decade + np.log10(step) for decade in range(-4, 12) for step in steps]
    axes.yaxis.set_major_locator(FixedLocator([tick for tick in ticks if low <= tick <= high]))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda tick, _: axis_number(round(10.0**tick, 4))))


def _draw_scale(axes: Axes, most: int, tint: str) -> None:
    """Draw the shades beside the axes with their counts: the greatest, and the decades below it."""
    shown = [most, *(10**power for power in range(9, -1, -1) if 10**power <= most / 2)]
    axes.text(1.035, 1.0, "orders", color=MUTED, transform=axes.transAxes, va="top")
    for place, count in enumerate(shown, start=2):
        foot = 1.0 - place * SWATCH_STEP
        shade = (tint, float(opacity(count, most)))
        swatch = Rectangle((1.035, foot), 0.045, SWATCH, linewidth=0, transform=axes.transAxes, clip_on=False)
        swatch.set_facecolor(shade)
        axes.add_patch(swatch)
        axes.text(1.1, foot + SWATCH / 2, axis_number(count), color=MUTED, transform=axes.transAxes, va="center")


def _cells(grid: HeatMap) -> dict[str, Any]:
    """Return for the pointer each column's first row that holds an order, and its counts from there on."""
    low, high = np.log10(grid.edges_us[[0, -1]]).tolist()
    columns = []
    for counts in grid.counts.T:
        used = np.flatnonzero(counts)
        columns.append([int(used[0]), *counts[used[0] : used[-1] + 1].tolist()] if len(used) else [])
    return {"step": grid.point_s, "low": low, "high": high, "rows": len(grid.counts), "columns": columns}


def _numbers(grid: HeatMap) -> Numbers:
    """Return a row for every cell that holds an order."""
    edges = grid.edges_us.tolist()
    rows, columns = np.nonzero(grid.counts)
    cells = sorted(zip(columns.tolist(), rows.tolist(), strict=True))
    return Numbers(
        ("from_second", "to_second", "from_us", "to_us", "orders"),
        [(x * grid.point_s, (x + 1) * grid.point_s, edges[y], edges[y + 1], int(grid.counts[y, x])) for x, y in cells],
    )
