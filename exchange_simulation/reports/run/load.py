"""The load of a run and its cost: rates, and CPU by component, from the spool's counts, meters and process records."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from exchange.json_records import Record, section
from exchange.load_shape import LoadShape
from exchange.meters import Meter
from exchange_simulation.reports.drawing.canvas import empty_axes, linear_y, time_x
from exchange_simulation.reports.drawing.chart import (
    Chart,
    EndLabel,
    Line,
    draw,
    label_ends,
    level,
    numbers_of,
    series_id,
)
from exchange_simulation.reports.drawing.colours import INK, MUTED, ROLE_COLOURS
from exchange_simulation.reports.formats.numbers import is_number
from exchange_simulation.reports.run.offered_load import LoadOfRun
from exchange_simulation.reports.run.run_folder import (
    RunFolder,
    axis_length_s,
    has_charts_over_time,
    mean_cores,
    middles_s,
    seconds_per_point,
)
from exchange_simulation.reports.run.seconds import RunSeconds

SENT_COLOUR = ROLE_COLOURS["gateway"]
ANSWERED_COLOUR = ROLE_COLOURS["engine"]
FIGURES_OF_RATES = {"sent": "orders_per_s", "answered": "answered_orders_per_s", "answers": "answers_per_s"}
"""The figure of each line of the chart of rates."""
COLOURS_OF_RATES = {"sent": SENT_COLOUR, "answered": ANSWERED_COLOUR, "answers": INK}
DOT: dict[str, Any] = {"marker": "o", "markersize": 3.5}
RING: dict[str, Any] = {"marker": "o", "markersize": 6, "markerfacecolor": "none"}
METER_STYLES = {
    Meter.GATEWAY_ORDERS_SENT: {"color": SENT_COLOUR, **DOT},
    Meter.ENGINE_ORDERS_RECEIVED: {"color": ANSWERED_COLOUR, **RING},
    Meter.ENGINE_MESSAGES_SENT: {"color": ANSWERED_COLOUR, **RING},
    Meter.GATEWAY_MESSAGES_RECEIVED: {"color": INK, **DOT},
}
MOST_DOTS = 30
"""The most readings of a meter that are drawn."""


def rates(folder: RunFolder) -> Chart | None:
    """Draw orders and answers a second beside the offered rate; meter readings as dots."""
    seconds = RunSeconds(folder)
    point_s = seconds_per_point(folder.spool)
    lines: dict[str, Line] = {}
    for title, figure in FIGURES_OF_RATES.items():
        line = line_of(seconds, figure, point_s)
        if line is not None:
            lines[title] = line
    dots = _meters(folder)
    if not lines and not dots:
        return None
    if not has_charts_over_time(folder):
        return None
    axes = empty_axes("a second", "seconds")
    labels = [draw(axes, line, text=title, colour=COLOURS_OF_RATES[title]) for title, line in lines.items()]
    for meter, line in dots.items():
        gid = series_id("line", f"meter {meter.name}")
        axes.plot(line.x, line.y, linestyle="none", clip_on=False, gid=gid, **METER_STYLES[meter])
    offered = _offered(folder)
    labels += [draw(axes, line, text=title, colour=MUTED) for title, line in offered.items()]
    _finish(axes, folder, labels)
    meters = {f"meter {meter.name.lower()}": line for meter, line in dots.items()}
    return Chart(axes, numbers_of("second", "per_s", {**lines, **meters, **offered}))


def line_of(seconds: RunSeconds, figure: str, point_s: int) -> Line | None:
    """Return a figure over the run's seconds, with a gap where it was not measured. None if no second has it."""
    means = seconds.means(figure, point_s)
    if not means:
        return None
    points = 1 + max(means)
    y = np.array([means.get(point, np.nan) for point in range(points)], np.float64)
    if not np.isfinite(y).any():
        return None
    return Line(middles_s(points, point_s), y)


def _meters(folder: RunFolder) -> dict[Meter, Line]:
    interval = section(folder.run, "settings").get("sampling_interval")
    if not is_number(interval):
        return {}
    return meter_dots(folder.spool["throughput"], interval)


def meter_dots(throughput: list[Record], sampling_interval: float) -> dict[Meter, Line]:
    """Return each meter's readings as rates over the time at which the reporter received them.

    Empty if the gateway's meter of sent orders, whose first reading sets the start of the time, has none.
    """
    by_meter: dict[Meter, list[Record]] = {meter: [] for meter in METER_STYLES}
    for record in throughput:
        if record["payload"]["meter"] in by_meter:
            by_meter[record["payload"]["meter"]].append(record)
    readings_of_sent = by_meter[Meter.GATEWAY_ORDERS_SENT]
    if not readings_of_sent or not readings_of_sent[0]["payload"]["rate_per_s"]:
        return {}
    # The first window of this meter opened with the first order and holds one sampling interval of orders.
    first = readings_of_sent[0]
    start_ns = first["wall_ns"] - 1e9 * sampling_interval / first["payload"]["rate_per_s"]
    return {meter: _dots(records, start_ns) for meter, records in by_meter.items() if records}


def _dots(records: list[Record], start_ns: float) -> Line:
    """Return a meter's readings as a line: each point adds the n-th readings of all sources, made at about one time."""
    by_source: defaultdict[str, list[Record]] = defaultdict(list)
    for record in records:
        by_source[record["source"]].append(record)
    readings_by_number = list(zip(*by_source.values(), strict=False))
    readings_a_dot = len(readings_by_number) // MOST_DOTS + 1
    times_s = []
    rates_per_s = []
    for readings in readings_by_number[::readings_a_dot]:
        times_s.append(np.mean([reading["wall_ns"] - start_ns for reading in readings]) / 1e9)
        rates_per_s.append(sum(reading["payload"]["rate_per_s"] for reading in readings))
    return Line(np.array(times_s, np.float64), np.array(rates_per_s, np.float64))


def _offered(folder: RunFolder) -> dict[str, Line]:
    """Return the offered rate by its label; of a ramp or a tape the mean. Empty if it is not known."""
    offered = LoadOfRun.of_run(folder.run)
    if offered.mean_per_s is None:
        return {}
    if offered.load is not None:
        return {"offered": _load_line(offered.load, offered.end_s)}
    label = "offered" if offered.is_steady else "mean offered"
    return {label: level(offered.mean_per_s)}


def _load_line(load: LoadShape, end_s: float) -> Line:
    """Return the rates of a load until it ends, with two points for each segment: its start and its end.

    An infinite `end_s` stands for the end of the last segment.
    """
    if math.isfinite(end_s):
        load = load.lasting(end_s)
    times_s = []
    rates_per_s = []
    segment_start_s = 0.0
    for segment in load.segments:
        segment_end_s = segment_start_s + (segment.seconds or 0.0)
        times_s += [segment_start_s, segment_end_s]
        rates_per_s += [segment.first, segment.last]
        segment_start_s = segment_end_s
    return Line(np.array(times_s, np.float64), np.array(rates_per_s, np.float64))


def cpu(folder: RunFolder) -> Chart | None:
    """Draw cores over time if a component reported each second, else its mean over the run."""
    if not has_charts_over_time(folder):
        return None
    axes = empty_axes("cores", "seconds")
    seconds = RunSeconds(folder)
    lines: dict[str, Line] = {}
    for role in ROLE_COLOURS:
        cores = _cores(folder, seconds, role)
        if cores is not None:
            lines[role] = cores
    if not lines:
        return None
    labels = [draw(axes, line, text=role, colour=ROLE_COLOURS[role]) for role, line in lines.items()]
    _finish(axes, folder, labels)
    return Chart(axes, numbers_of("second", "cores", lines))


def _cores(folder: RunFolder, seconds: RunSeconds, role: str) -> Line | None:
    """Return a component's cores over time; their mean over the run as a level line; or None if not measured."""
    over_time = line_of(seconds, f"{role}_cpu_cores", seconds_per_point(folder.spool))
    if over_time is not None:
        return over_time
    mean = mean_cores(folder.run).get(role)
    return None if mean is None else level(mean)


def _finish(axes: Axes, folder: RunFolder, labels: list[EndLabel]) -> None:
    """Set the axes' limits, and label the lines."""
    linear_y(axes)
    time_x(axes, axis_length_s(folder))
    label_ends(axes, labels)
