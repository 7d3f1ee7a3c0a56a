"""Completion times: over the run's seconds, and over the percentiles."""

from __future__ import annotations

from matplotlib.axes import Axes

from reports.drawing.canvas import empty_axes, log_y, time_x
from reports.drawing.chart import Chart, of_lines
from reports.drawing.colours import BLUE, GREEN, MUTED, ORANGE
from reports.drawing.labelled_lines import draw, label_ends
from reports.drawing.series import Line, length_s, seconds_per_point
from reports.formats import is_number
from reports.run.completion_series import completion_lines, percentile_curves, percents_of
from reports.run.run_folder import Record, RunFolder, part

PERCENTILE_COLOURS = {"max": MUTED, "p99": ORANGE, "p50": BLUE}
CLOCK_LABELS = {"due": "from due", "handed_over": "handed over", "lag": "lag"}
CLOCK_COLOURS = {"due": ORANGE, "handed_over": BLUE, "lag": GREEN}
HALF = 0.30103  # in nines
ROOM, LAST_ROOM = 0.11, 0.13  # of the axis, for a tick's number, and before the last one


def over_time(folder: RunFolder) -> Chart | None:
    """p50, p99 and max of every second."""
    lines = completion_lines(folder.spool["completion"], seconds_per_point(folder.spool))
    if not lines:
        return None
    axes = empty_axes("µs", "seconds")
    labels = [draw(axes, lines[name], text=name, colour=colour) for name, colour in PERCENTILE_COLOURS.items()]
    log_y(axes)
    time_x(axes, length_s(folder))
    label_ends(axes, labels)
    return Chart(axes, of_lines("second", "us", lines))


def by_percentile(folder: RunFolder) -> Chart | None:
    """Every clock over the nines: 90, 99, 99.9 % lie equally far apart."""
    curves = percentile_curves(folder.spool["completion"], warm_up_s(folder.run))
    if not curves:
        return None
    axes = empty_axes("µs", "% of orders")
    shown = [clock for clock in CLOCK_LABELS if clock in curves]
    labels = [draw(axes, curves[c], text=CLOCK_LABELS[c], colour=CLOCK_COLOURS[c]) for c in shown]
    log_y(axes)
    _nines_x(axes)
    label_ends(axes, labels)
    return Chart(axes, of_lines("percent", "us", {clock: _over_percent(curves[clock]) for clock in shown}))


def _over_percent(curve: Line) -> Line:
    return Line(percents_of(curve.x), curve.y)


def warm_up_s(run: Record) -> float:
    found = part(run, "settings").get("warm_up_s")
    return found if is_number(found) else 0.0


def _nines_x(axes: Axes) -> None:
    """From the fastest to the slowest order, which is as far as their number carries."""
    right = axes.dataLim.x1
    ticks = nines_ticks(right)
    axes.set_xlim(0.0, right)
    axes.set_xticks(list(ticks), list(ticks.values()))


def nines_ticks(right: float) -> dict[float, str]:
    """50, 90, 99, 99.9 ... and the slowest, by their place in nines; as far as there is room for their numbers."""
    nines = {HALF: 50.0} | {float(n): 100.0 - 100.0 / 10**n for n in range(1, int(right) + 1)}
    ticks: dict[float, str] = {}
    for nine, percent in nines.items():
        if nine <= 1 or nine - max(ticks) >= ROOM * right:
            ticks[nine] = f"{percent:.10g}"
    return {nine: text for nine, text in ticks.items() if right - nine >= LAST_ROOM * right} | {right: "max"}
