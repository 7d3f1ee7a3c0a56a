"""Completion times: over the run's seconds, and over the percentiles."""

from __future__ import annotations

from matplotlib.axes import Axes

from experiments.page.canvas import empty_axes, log_y, time_x
from experiments.page.colours import BLUE, GREEN, MUTED, ORANGE
from experiments.page.completion_series import completion_lines, percentile_curves
from experiments.page.formats import axis_number, is_number
from experiments.page.labelled_lines import draw, label_ends
from experiments.page.run_folder import Record, RunFolder, part
from experiments.page.series import length_s, seconds_per_point

PERCENTILE_COLOURS = {"max": MUTED, "p99": ORANGE, "p50": BLUE}
CLOCK_LABELS = {"due": "from due", "handed_over": "handed over", "lag": "lag"}
CLOCK_COLOURS = {"due": ORANGE, "handed_over": BLUE, "lag": GREEN}
NINES_TICKS = {0.30103: 50.0, 1: 90.0, 2: 99.0, 3: 99.9, 4: 99.99, 5: 99.999, 6: 99.9999}


def over_time(folder: RunFolder) -> Axes | None:
    """p50, p99 and max of every second."""
    lines = completion_lines(folder.spool["completion"], seconds_per_point(folder.spool))
    if not lines:
        return None
    axes = empty_axes("µs", "seconds")
    labels = [draw(axes, lines[name], text=name, colour=colour) for name, colour in PERCENTILE_COLOURS.items()]
    log_y(axes)
    time_x(axes, length_s(folder))
    label_ends(axes, labels)
    return axes


def by_percentile(folder: RunFolder) -> Axes | None:
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
    return axes


def warm_up_s(run: Record) -> float:
    found = part(run, "settings").get("warm_up_s")
    return found if is_number(found) else 0.0


def _nines_x(axes: Axes) -> None:
    right = axes.dataLim.x1
    nines = [nine for nine in NINES_TICKS if nine <= right]
    axes.set_xlim(0.0, right)
    axes.set_xticks(nines, [axis_number(NINES_TICKS[nine]) for nine in nines])
