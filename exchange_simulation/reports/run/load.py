"""The load of a run and its cost: rates, and CPU by component, from the spool's counts, meters and process records."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from exchange.json_records import Record, section
from exchange.measurements import Meter
from exchange.workload import is_steady
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
from exchange_simulation.reports.run.run_folder import (
    RunFolder,
    is_long_enough,
    mean_cores,
    middles_s,
    seconds_per_point,
    span_s,
)
from exchange_simulation.reports.run.seconds import RunSeconds

SENT = ROLE_COLOURS["gateway"]
ANSWERED = ROLE_COLOURS["engine"]
DRAWN_RATES = {
    "sent": ("orders_per_s", SENT),
    "answered": ("answered_orders_per_s", ANSWERED),
    "answers": ("answers_per_s", INK),
}
"""The figure of each line, and its colour."""
DOT: dict[str, Any] = {"marker": "o", "markersize": 3.5}
RING: dict[str, Any] = {"marker": "o", "markersize": 6, "markerfacecolor": "none"}
METER_STYLES = {
    Meter.GATEWAY_ORDERS_SENT: {"color": SENT, **DOT},
    Meter.ENGINE_ORDERS_RECEIVED: {"color": ANSWERED, **RING},
    Meter.ENGINE_MESSAGES_SENT: {"color": ANSWERED, **RING},
    Meter.GATEWAY_MESSAGES_RECEIVED: {"color": INK, **DOT},
}
MAX_DOTS = 30  # of a meter


def rates(folder: RunFolder) -> Chart | None:
    """Draw orders and answers a second beside the offered rate; meter readings as dots."""
    seconds = RunSeconds(folder)
    point_s = seconds_per_point(folder.spool)
    dots = _meters(folder)
    lines = {text: line for text, (name, _) in DRAWN_RATES.items() if (line := line_of(seconds, name, point_s))}
    if not (lines or dots) or not is_long_enough(folder):
        return None
    axes = empty_axes("a second", "seconds")
    labels = [draw(axes, line, text=text, colour=DRAWN_RATES[text][1]) for text, line in lines.items()]
    for meter, line in dots.items():
        gid = series_id("line", f"meter {meter.name}")
        axes.plot(line.x, line.y, linestyle="none", clip_on=False, gid=gid, **METER_STYLES[meter])
    offered = _offered(folder)
    labels += [draw(axes, line, text=name, colour=MUTED) for name, line in offered.items()]
    _finish(axes, folder, labels)
    meters = {f"meter {meter.name.lower()}": line for meter, line in dots.items()}
    return Chart(axes, numbers_of("second", "per_s", {**lines, **meters, **offered}))


def line_of(seconds: RunSeconds, name: str, point_s: int) -> Line | None:
    """Return a figure of the seconds over time; a second that does not have it is a gap. None if no second has it."""
    means = seconds.means(name, point_s)
    points = 1 + max(means, default=-1)
    y = np.array([means.get(point, np.nan) for point in range(points)], np.float64)
    return Line(middles_s(points, point_s), y) if np.isfinite(y).any() else None


def _meters(folder: RunFolder) -> dict[Meter, Line]:
    interval = section(folder.run, "settings").get("sampling_interval")
    return meter_dots(folder.spool["throughput"], interval) if is_number(interval) else {}


def meter_dots(throughput: list[Record], sampling_interval: float) -> dict[Meter, Line]:
    """Return each meter's rate at the moment its reading came to the reporter, by the reporter's clock."""
    by_meter: dict[Meter, list[Record]] = {meter: [] for meter in METER_STYLES}
    for record in throughput:
        if record["payload"]["meter"] in by_meter:
            by_meter[record["payload"]["meter"]].append(record)
    first = next(iter(by_meter[Meter.GATEWAY_ORDERS_SENT]), None)
    if first is None or not first["payload"]["rate_per_s"]:
        return {}
    # The first window of meter 1 opened with the first order and holds one sampling interval of them.
    start_ns = first["wall_ns"] - 1e9 * sampling_interval / first["payload"]["rate_per_s"]
    return {meter: _dots(records, start_ns) for meter, records in by_meter.items() if records}


def _dots(records: list[Record], start_ns: float) -> Line:
    """Add the n-th readings of all sources, which are of about the same time."""
    by_source: defaultdict[str, list[Record]] = defaultdict(list)
    for record in records:
        by_source[record["source"]].append(record)
    alike = list(zip(*by_source.values(), strict=False))
    shown = alike[:: len(alike) // MAX_DOTS + 1]
    at_s = np.array([np.mean([r["wall_ns"] - start_ns for r in readings]) for readings in shown], np.float64) / 1e9
    return Line(at_s, np.array([sum(r["payload"]["rate_per_s"] for r in readings) for readings in shown], np.float64))


def _offered(folder: RunFolder) -> dict[str, Line]:
    """Return the offered rate by its label. The rate of a ramp or a tape changes, so only its mean is known."""
    offered = section(folder.run, "rates").get("offered_orders_per_s")
    text = "offered" if is_steady(section(folder.run, "settings").get("arrivals", "fixed")) else "mean offered"
    return {text: level(offered)} if is_number(offered) else {}


def cpu(folder: RunFolder) -> Chart | None:
    """Draw cores over time if a component reported each second, else its mean over the run."""
    if not is_long_enough(folder):
        return None
    axes = empty_axes("cores", "seconds")
    seconds = RunSeconds(folder)
    lines: dict[str, Line] = {}
    for name in ROLE_COLOURS:
        cores = _cores(folder, seconds, name)
        if cores:
            lines[name] = cores
    if not lines:
        return None
    labels = [draw(axes, line, text=name, colour=ROLE_COLOURS[name]) for name, line in lines.items()]
    _finish(axes, folder, labels)
    return Chart(axes, numbers_of("second", "cores", lines))


def _cores(folder: RunFolder, seconds: RunSeconds, role: str) -> Line | None:
    line = line_of(seconds, f"{role}_cpu_cores", seconds_per_point(folder.spool))
    mean = mean_cores(folder.run).get(role)
    return line or (level(mean) if mean is not None else None)


def _finish(axes: Axes, folder: RunFolder, labels: list[EndLabel]) -> None:
    linear_y(axes)
    time_x(axes, span_s(folder))
    label_ends(axes, labels)
