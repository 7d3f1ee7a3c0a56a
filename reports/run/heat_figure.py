"""Every completion over the run as a heat map: a pause, and what waited behind it, is a plume."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.patches import Rectangle
from matplotlib.ticker import FixedLocator, FuncFormatter

from reports.drawing.canvas import empty_axes, time_x
from reports.drawing.chart import Chart, Numbers
from reports.drawing.colours import BLUE, MUTED
from reports.drawing.series import length_s, seconds_per_point
from reports.formats import axis_number
from reports.run.heat_series import HeatMap, heat_map
from reports.run.run_folder import RunFolder

MOST_COLUMNS = 150  # two pixels each
FAINTEST = 0.2  # of one order: to be seen on white and on black
SWATCH, SWATCH_STEP = 0.055, 0.085  # of the axes' height
FEW_DECADES = 2.6


def heat(folder: RunFolder) -> Chart | None:
    found = heat_map(folder.spool["completion"], seconds_per_point(folder.spool, MOST_COLUMNS))
    if found is None:
        return None
    axes = empty_axes("µs", "seconds")
    axes.grid(visible=False)
    _draw_cells(axes, found)
    _log_ticks(axes, found.edges_us)
    time_x(axes, length_s(folder))
    _draw_scale(axes, int(found.counts.max()))
    return Chart(axes, _numbers(found))


def _draw_cells(axes: Axes, found: HeatMap) -> None:
    """As an image of a pixel a cell: thousands of rectangles would outweigh the page."""
    rgba = np.empty((*found.counts.shape, 4))
    rgba[..., :3] = to_rgb(BLUE)
    rgba[..., 3] = opacity(found.counts, int(found.counts.max()))
    low, high = np.log10(found.edges_us[[0, -1]])
    extent = (0.0, float(found.counts.shape[1] * found.point_s), float(low), float(high))
    axes.imshow(rgba, origin="lower", extent=extent, aspect="auto", interpolation="none")


def opacity(counts: npt.ArrayLike, most: int) -> npt.NDArray[np.float64]:
    """0 of none; else by the count's logarithm."""
    shares = np.log(np.maximum(counts, 1)) / np.log(max(most, 2))
    return np.asarray(np.where(np.asarray(counts) > 0, FAINTEST + (1 - FAINTEST) * shares, 0.0), np.float64)


def _log_ticks(axes: Axes, edges_us: npt.NDArray[np.float64]) -> None:
    """The axis holds logarithms, since an image has rows of one height."""
    low, high = np.log10(edges_us[[0, -1]])
    steps = (1.0, 2.0, 5.0) if high - low < FEW_DECADES else (1.0,)
    ticks = [decade + np.log10(step) for decade in range(-4, 12) for step in steps]
    axes.yaxis.set_major_locator(FixedLocator([tick for tick in ticks if low <= tick <= high]))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda tick, _: axis_number(round(10.0**tick, 4))))


def _draw_scale(axes: Axes, most: int) -> None:
    """What a shade stands for, beside the axes: the most, and the decades below."""
    shown = [most, *(10**power for power in range(9, -1, -1) if 10**power <= most / 2)]
    axes.text(1.035, 1.0, "orders", color=MUTED, transform=axes.transAxes, va="top")
    for place, count in enumerate(shown, start=2):
        foot = 1.0 - place * SWATCH_STEP
        shade = (BLUE, float(opacity(count, most)))
        swatch = Rectangle((1.035, foot), 0.045, SWATCH, linewidth=0, transform=axes.transAxes, clip_on=False)
        swatch.set_facecolor(shade)
        axes.add_patch(swatch)
        axes.text(1.1, foot + SWATCH / 2, axis_number(count), color=MUTED, transform=axes.transAxes, va="center")


def _numbers(found: HeatMap) -> Numbers:
    """A row for every cell that holds an order."""
    edges = found.edges_us.tolist()
    rows, columns = np.nonzero(found.counts)
    cells = sorted(zip(columns.tolist(), rows.tolist(), strict=True))
    return Numbers(
        ("from_second", "to_second", "from_us", "to_us", "orders"),
        [(x * found.point_s, (x + 1) * found.point_s, edges[y], edges[y + 1], int(found.counts[y, x]))
         for x, y in cells],
    )  # fmt: skip
