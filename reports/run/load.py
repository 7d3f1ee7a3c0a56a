"""The load of a run and its cost: rates, and CPU by component, from the spool's counts, meters and process records."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from exchange.instances import role_of
from exchange.measurements import Meter
from exchange.seconds import History, Reading
from exchange.workload import is_steady
from reports.drawing.canvas import empty_axes, linear_y, time_x
from reports.drawing.chart import Chart, EndLabel, Line, draw, label_ends, level, line_where_measured, numbers_of
from reports.drawing.colours import BLUE, MUTED, ORANGE, ROLE_COLOURS
from reports.exports import grouped
from reports.formats import is_number
from reports.run.run_folder import Record, RunFolder, length_s, mean_cores, middles_s, seconds_per_point, section

TRAFFIC_LABELS = {"orders_sent": "orders sent", "messages_received": "answers"}
TRAFFIC_COLOURS = {"orders_sent": BLUE, "messages_received": ORANGE}
DOT: dict[str, Any] = {"marker": "o", "markersize": 3.5}
RING: dict[str, Any] = {"marker": "o", "markersize": 6, "markerfacecolor": "none"}
METER_STYLES = {
    Meter.GATEWAY_ORDERS_SENT: {"color": BLUE, **DOT},
    Meter.ENGINE_ORDERS_RECEIVED: {"color": BLUE, **RING},
    Meter.ENGINE_MESSAGES_SENT: {"color": ORANGE, **RING},
    Meter.GATEWAY_MESSAGES_RECEIVED: {"color": ORANGE, **DOT},
}
THROUGHPUT_METERS = tuple(Meter)[:4]
MAX_DOTS = 30  # of a meter


def rates(folder: RunFolder) -> Chart | None:
    """Orders and answers a second beside the offered rate; meter readings as dots."""
    lines, dots = _traffic(folder), _meters(folder)
    if not lines and not dots:
        return None
    axes = empty_axes("per second", "seconds")
    labels = [draw(axes, lines[n], text=TRAFFIC_LABELS[n], colour=TRAFFIC_COLOURS[n]) for n in lines]
    for meter, line in dots.items():
        axes.plot(line.x, line.y, linestyle="none", clip_on=False, **METER_STYLES[meter])
    offered = _offered(folder)
    labels += [draw(axes, line, text=name, colour=MUTED) for name, line in offered.items()]
    _finish(axes, folder, labels)
    meters = {f"meter {meter.name.lower()}": line for meter, line in dots.items()}
    return Chart(axes, numbers_of("second", "per_s", {**lines, **meters, **offered}))


def _traffic(folder: RunFolder) -> dict[str, Line]:
    point_s = seconds_per_point(folder.spool)
    lines = {name: traffic_line(folder.spool["traffic"], name, point_s) for name in TRAFFIC_LABELS}
    return {name: line for name, line in lines.items() if line is not None}


def traffic_line(traffic: list[Record], name: str, point_s: int) -> Line | None:
    """A count per second. The last point is left out: the run ended somewhere within it."""
    if not traffic:
        return None
    points = [record["payload"]["second"] // point_s for record in traffic]
    per_s = np.bincount(points, weights=[record["payload"][name] for record in traffic]) / point_s
    per_s[np.bincount(points) == 0] = np.nan
    finished = max(len(per_s) - 1, 1)
    return line_where_measured(middles_s(finished, point_s), per_s[:finished])


def _meters(folder: RunFolder) -> dict[Meter, Line]:
    interval = section(folder.run, "settings").get("sampling_interval")
    return meter_dots(folder.spool["throughput"], interval) if is_number(interval) else {}


def meter_dots(throughput: list[Record], sampling_interval: float) -> dict[Meter, Line]:
    """Each meter's rate at the moment its window closed, by the reporter's clock."""
    by_meter = {meter: [r for r in throughput if r["payload"]["meter"] == meter] for meter in THROUGHPUT_METERS}
    first = next(iter(by_meter[Meter.GATEWAY_ORDERS_SENT]), None)
    if first is None or not first["payload"]["rate_per_s"]:
        return {}
    # The first window of meter 1 opened with the first order and holds one sampling interval of them.
    start_ns = first["wall_ns"] - 1e9 * sampling_interval / first["payload"]["rate_per_s"]
    return {meter: _dots(records, start_ns) for meter, records in by_meter.items() if records}


def _dots(records: list[Record], start_ns: float) -> Line:
    """Add the n-th readings of all sources, which are of about the same time."""
    alike = list(zip(*grouped(records, lambda record: record["source"]).values(), strict=False))
    shown = alike[:: len(alike) // MAX_DOTS + 1]
    at_s = np.array([np.mean([r["wall_ns"] - start_ns for r in readings]) for readings in shown], np.float64) / 1e9
    return Line(at_s, np.array([sum(r["payload"]["rate_per_s"] for r in readings) for readings in shown], np.float64))


def _offered(folder: RunFolder) -> dict[str, Line]:
    """The offered rate by its label. The rate of a ramp or a tape changes, so only its mean is known."""
    offered = section(folder.run, "rates").get("offered_orders_per_s")
    text = "offered" if is_steady(section(folder.run, "settings").get("arrivals", "fixed")) else "mean offered"
    return {text: level(offered)} if is_number(offered) else {}


def cpu(folder: RunFolder) -> Chart | None:
    """Cores over time if a component reported each second, else its mean over the run."""
    axes = empty_axes("cores", "seconds")
    found = {name: line for name in ROLE_COLOURS if (line := _cores(folder, name))}
    if not found:
        return None
    labels = [draw(axes, line, text=name, colour=ROLE_COLOURS[name]) for name, line in found.items()]
    _finish(axes, folder, labels)
    return Chart(axes, numbers_of("second", "cores", found))


def _cores(folder: RunFolder, role: str) -> Line | None:
    line = cpu_line(folder.spool["process"], role, seconds_per_point(folder.spool))
    mean = mean_cores(folder.run).get(role)
    return line or (level(mean) if mean is not None else None)


def cpu_line(process: list[Record], role: str, point_s: int) -> Line | None:
    """Cores in use between neighbouring records of a component; the sum over the components of the role."""
    histories: defaultdict[str, History] = defaultdict(History)
    for record in process:
        if role_of(record["source"]) == role:
            reading = Reading(record["monotonic_ns"], record["payload"]["cpu_s"])
            histories[record["source"]].put(record["payload"]["second"], reading)
    total: defaultdict[float, float] = defaultdict(float)
    for history in histories.values():
        for second, grown in history.intervals(point_s):
            if grown.is_long_enough:
                total[second + 1 - point_s / 2] += grown.cores
    at_s = sorted(total)
    return line_where_measured(np.array(at_s), np.array([total[middle_s] for middle_s in at_s]))


def _finish(axes: Axes, folder: RunFolder, labels: list[EndLabel]) -> None:
    linear_y(axes)
    time_x(axes, length_s(folder))
    label_ends(axes, labels)
