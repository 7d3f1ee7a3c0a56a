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
    completion_clock,
    is_long_enough,
    middles_s,
    run_colour,
    seconds_per_point,
    span_s,
    warm_up_s,
)

DRAWN_PERCENTS = {"p50": PERCENTS["p50"], "p99": PERCENTS["p99"], "max": 100.0}
CLOCK_LABELS = {"due": "from due", "handed_over": "handed over", "lag": "lag"}
CURVE_POINTS = 240
CELLS_PER_OCTAVE = 8
BUCKETS_PER_CELL = BUCKETS_PER_OCTAVE // CELLS_PER_OCTAVE
"""A cell of the heat map is an eighth of an octave high."""
HALF = 0.30103  # in nines
TICK_SHARE, LAST_TICK_SHARE = 0.11, 0.13  # of the axis, that a tick's number needs, and the last tick's


def over_time(folder: RunFolder) -> Chart | None:
    """Draw p50, p99 and max of every second, on the axes of the heat map beside it."""
    clock = completion_clock(folder)
    lines = completion_lines(folder.spool["completion"], seconds_per_point(folder.spool), clock)
    if not lines or not is_long_enough(folder):
        return None
    axes = empty_axes("µs", "seconds")
    colours = {"max": MUTED, "p99": INK, "p50": run_colour(folder.run)}
    labels = [draw(axes, lines[name], text=name, colour=colour) for name, colour in colours.items()]
    log_y(axes)
    axes.set_ylim(*limits_us(folder.spool["completion"], clock))
    time_x(axes, span_s(folder))
    label_ends(axes, labels)
    return Chart(axes, numbers_of("second", "us", lines))


def limits_us(completions: list[Record], clock: str) -> tuple[float, float]:
    """Return the edges of the heat map's cells that hold the fastest and the slowest order."""
    analysed = of_clock(completions, clock)
    fastest = min(p["min_ns"] for p in analysed)
    slowest = max(p["max_ns"] for p in analysed)
    low, high = (int(bucket_of(ns)) // BUCKETS_PER_CELL for ns in (fastest, slowest))
    return 2.0 ** (low / CELLS_PER_OCTAVE) / 1e3, 2.0 ** ((high + 1) / CELLS_PER_OCTAVE) / 1e3


def by_percentile(folder: RunFolder) -> Chart | None:
    """Draw every clock over the nines: 90, 99, 99.9 % are equally far apart."""
    curves = percentile_curves(folder.spool["completion"], warm_up_s(folder.run))
    if not curves:
        return None
    axes = empty_axes("µs", "% of orders")
    shown = [clock for clock in CLOCK_LABELS if clock in curves]
    colours = {"due": run_colour(folder.run), "handed_over": INK, "lag": ROLE_COLOURS["gateway"]}
    if "due" not in shown:
        colours["handed_over"] = run_colour(folder.run)
    on_top_last = reversed(shown)
    labels = [draw(axes, curves[c], text=CLOCK_LABELS[c], colour=colours[c]) for c in on_top_last][::-1]
    log_y(axes)
    _nines_x(axes)
    label_ends(axes, labels)
    over_percent = {clock: Line(_percents(curves[clock].x), curves[clock].y) for clock in shown}
    return Chart(axes, numbers_of("percent", "us", over_percent), x_scale="nines")


def completion_lines(completions: list[Record], point_s: int, clock: str) -> dict[str, Line]:
    """Return p50, p99 and max of the completion time by this clock, in us, over time; the warm-up included."""
    points = merged_by((int(payload["second"]) // point_s, payload) for payload in of_clock(completions, clock))
    if not points:
        return {}
    y = np.full((len(DRAWN_PERCENTS), max(points) + 1), np.nan)
    for point, buckets in points.items():
        y[:, point] = _percentiles_us(buckets, np.array([*DRAWN_PERCENTS.values()]))
    *others, last = (points[point].count for point in sorted(points))
    y = y if is_full(last, others) else y[:, :-1]
    return {name: Line(middles_s(y.shape[1], point_s), row) for name, row in zip(DRAWN_PERCENTS, y, strict=True)}


def percentile_curves(completions: list[Record], warm_up_s: float) -> dict[str, Line]:
    """Return each clock's time in us over the nines, -log10(1 - p), up to where one order is left."""
    warm = [record for record in completions if record["payload"]["second"] >= warm_up_s]
    histograms = {clock: merged(of_clock(warm, clock)) for clock in CLOCKS}
    return {clock: _percentile_curve(buckets) for clock, buckets in histograms.items() if buckets.count > 1}


def of_clock(completions: list[Record], clock: str) -> list[Record]:
    """Return the payloads of this clock that are analysed."""
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
    """Return the percentiles. The maximum is exact, no bucket's middle; a log axis cannot show less than 1 ns."""
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
    nines = {HALF: 50.0} | {float(n): 100.0 - 100.0 / 10**n for n in range(1, int(right) + 1)}
    ticks: dict[float, str] = {}
    for nine, percent in nines.items():
        if nine <= 1 or nine - max(ticks) >= TICK_SHARE * right:
            ticks[nine] = f"{percent:.10g}"
    return {nine: text for nine, text in ticks.items() if right - nine >= LAST_TICK_SHARE * right} | {right: "max"}
