"""Completion times of a run: over its seconds, and over the percentiles, from the spool's log buckets.

Buckets merge by adding counts, so a point for many seconds is as exact as one for a single second.
"""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes

from exchange.json_records import Record
from exchange.measurements import BUCKETS_PER_OCTAVE, CLOCKS, LogBuckets, bucket_of
from exchange.percentiles import PERCENTS
from exchange.seconds import is_analysed, is_full, merged, merged_by
from exchange_simulation.reports.drawing.canvas import empty_axes, log_y, time_x
from exchange_simulation.reports.drawing.chart import Chart, Floats, Line, draw, label_ends, numbers_of
from exchange_simulation.reports.drawing.colours import INK, MUTED, ROLE_COLOURS
from exchange_simulation.reports.run.run_folder import (
    RunFolder,
    axis_length_s,
    completion_clock,
    has_charts_over_time,
    middles_s,
    run_colour,
    seconds_per_point,
    warm_up_s,
)

DRAWN_PERCENTS = {"p50": PERCENTS["p50"], "p99": PERCENTS["p99"], "max": 100.0}
CLOCK_LABELS = {"due": "from due", "handed_over": "handed over", "lag": "lag"}
CURVE_POINTS = 240
CELLS_PER_OCTAVE = 8
"""A cell of the heat map is an eighth of an octave high."""
BUCKETS_PER_CELL = BUCKETS_PER_OCTAVE // CELLS_PER_OCTAVE
NINES_OF_HALF = 0.30103
"""The place of 50 %: -log10(1 - 0.5)."""
TICK_SHARE = 0.11
"""The share of the axis that a tick's number needs."""
LAST_TICK_SHARE = 0.13
"""The share of the axis that the last tick's number needs."""


def over_time(folder: RunFolder) -> Chart | None:
    """Draw p50, p99 and max of every second, on the axes of the heat map beside it."""
    clock = completion_clock(folder)
    lines = completion_lines(folder.spool["completion"], seconds_per_point(folder.spool), clock)
    if not lines or not has_charts_over_time(folder):
        return None
    axes = empty_axes("µs", "seconds")
    colours = {"max": MUTED, "p99": INK, "p50": run_colour(folder.run)}
    labels = [draw(axes, lines[name], text=name, colour=colour) for name, colour in colours.items()]
    log_y(axes)
    axes.set_ylim(*limits_us(folder.spool["completion"], clock))
    time_x(axes, axis_length_s(folder))
    label_ends(axes, labels)
    return Chart(axes, numbers_of("second", "us", lines))


def limits_us(completions: list[Record], clock: str) -> tuple[float, float]:
    """Return the edges of the heat map: the lower one of the fastest order's cell, the upper one of the slowest's."""
    payloads = analysed_payloads(completions, clock)
    fastest_ns = min(payload["min_ns"] for payload in payloads)
    slowest_ns = max(payload["max_ns"] for payload in payloads)
    lowest_cell = int(bucket_of(fastest_ns)) // BUCKETS_PER_CELL
    highest_cell = int(bucket_of(slowest_ns)) // BUCKETS_PER_CELL
    return _lower_edge_us(lowest_cell), _lower_edge_us(highest_cell + 1)


def _lower_edge_us(cell: int) -> float:
    return float(2.0 ** (cell / CELLS_PER_OCTAVE) / 1e3)


def by_percentile(folder: RunFolder) -> Chart | None:
    """Draw every clock over the nines: 90, 99, 99.9 % are equally far apart."""
    curves = percentile_curves(folder.spool["completion"], warm_up_s(folder.run))
    if not curves:
        return None
    axes = empty_axes("µs", "% of orders")
    clocks = [clock for clock in CLOCK_LABELS if clock in curves]
    colours = {"due": run_colour(folder.run), "handed_over": INK, "lag": ROLE_COLOURS["gateway"]}
    if "due" not in clocks:
        colours["handed_over"] = run_colour(folder.run)
    labels = []
    for clock in reversed(clocks):  # the line drawn last lies above the others
        labels.append(draw(axes, curves[clock], text=CLOCK_LABELS[clock], colour=colours[clock]))
    log_y(axes)
    _nines_x(axes)
    label_ends(axes, labels[::-1])
    lines_over_percents = {clock: Line(_percents(curves[clock].x), curves[clock].y) for clock in clocks}
    return Chart(axes, numbers_of("percent", "us", lines_over_percents), x_scale="nines")


def completion_lines(completions: list[Record], point_s: int, clock: str) -> dict[str, Line]:
    """Return p50, p99 and max of the completion time by this clock, in us, over time; the warm-up included."""
    payloads = analysed_payloads(completions, clock)
    buckets_by_point = merged_by((int(payload["second"]) // point_s, payload) for payload in payloads)
    if not buckets_by_point:
        return {}
    percents = np.array([*DRAWN_PERCENTS.values()])
    times_us = np.full((len(percents), max(buckets_by_point) + 1), np.nan)
    for point, buckets in buckets_by_point.items():
        times_us[:, point] = _percentiles_us(buckets, percents)
    *counts, last_count = (buckets_by_point[point].count for point in sorted(buckets_by_point))
    if not is_full(last_count, counts):
        times_us = times_us[:, :-1]
    x = middles_s(times_us.shape[1], point_s)
    return {name: Line(x, times_us[row]) for row, name in enumerate(DRAWN_PERCENTS)}


def percentile_curves(completions: list[Record], warm_up_s: float) -> dict[str, Line]:
    """Return each clock's time in us over the nines, -log10(1 - p), up to where one order is left."""
    after_warm_up = [record for record in completions if record["payload"]["second"] >= warm_up_s]
    curves = {}
    for clock in CLOCKS:
        buckets = merged(analysed_payloads(after_warm_up, clock))
        if buckets.count > 1:
            curves[clock] = _percentile_curve(buckets)
    return curves


def analysed_payloads(completions: list[Record], clock: str) -> list[Record]:
    """Return the payloads of this clock, without those that are not analysed."""
    payloads = (record["payload"] for record in completions)
    return [payload for payload in payloads if payload["clock"] == clock and is_analysed(payload)]


def _percentile_curve(buckets: LogBuckets) -> Line:
    nines = np.linspace(0.0, np.log10(buckets.count), CURVE_POINTS)
    return Line(nines, _percentiles_us(buckets, _percents(nines)))


def _percents(nines: Floats) -> Floats:
    """Convert nines to percents; the last point is the slowest order, so it becomes 100 %."""
    percents = 100.0 * (1.0 - 10.0**-nines)
    percents[-1] = 100.0
    return percents


def _percentiles_us(buckets: LogBuckets, percents: Floats) -> Floats:
    """Return the percentiles, the maximum exactly; all are at least 1 ns, since a log axis cannot show 0."""
    values_ns = np.where(percents >= 100.0, buckets.max_ns, buckets.percentiles_ns(percents))
    return np.maximum(values_ns, 1.0) / 1e3


def _nines_x(axes: Axes) -> None:
    """Set the axis from the fastest to the slowest order, as far as the number of orders carries."""
    right = axes.dataLim.x1
    ticks = nines_ticks(right)
    axes.set_xlim(0.0, right)
    axes.set_xticks(list(ticks), list(ticks.values()))


def nines_ticks(right: float) -> dict[float, str]:
    """Return 50, 90, 99, 99.9 ... and the slowest, by their place in nines; those whose numbers do not overlap."""
    percents = {NINES_OF_HALF: 50.0}
    for nines in range(1, int(right) + 1):
        percents[float(nines)] = 100.0 - 100.0 / 10**nines
    spaced: dict[float, str] = {}
    for place, percent in percents.items():
        if place <= 1 or place - max(spaced) >= TICK_SHARE * right:
            spaced[place] = f"{percent:.10g}"
    ticks = {place: text for place, text in spaced.items() if right - place >= LAST_TICK_SHARE * right}
    ticks[right] = "max"
    return ticks
