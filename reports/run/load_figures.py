"""The load and what it cost: rates, and CPU by component."""

from __future__ import annotations

from typing import Any

from matplotlib.axes import Axes

from exchange.measurements import Meter
from exchange.workload import is_steady
from reports.drawing.canvas import empty_axes, linear_y, time_x
from reports.drawing.chart import Chart, of_lines
from reports.drawing.colours import BLUE, GREEN, MUTED, ORANGE, PURPLE
from reports.drawing.labelled_lines import EndLabel, draw, draw_level, label_ends
from reports.drawing.series import Line, is_level, length_s, level, seconds_per_point
from reports.formats import is_number
from reports.run.load_series import cpu_line, meter_dots, traffic_line
from reports.run.run_folder import RunFolder, part
from reports.run.story import mean_cores

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
COMPONENT_COLOURS = {"gateway": BLUE, "engine": ORANGE, "broker": PURPLE, "reporter": GREEN}


def rates(folder: RunFolder) -> Chart | None:
    """Orders and answers a second beside what was offered; the meters as dots."""
    lines, dots = _traffic(folder), _meters(folder)
    if not lines and not dots:
        return None
    axes = empty_axes("per second", "seconds")
    labels = [draw(axes, lines[n], text=TRAFFIC_LABELS[n], colour=TRAFFIC_COLOURS[n]) for n in lines]
    for meter, line in dots.items():
        axes.plot(line.x, line.y, linestyle="none", clip_on=False, **METER_STYLES[meter])
    offered = _offered(folder)
    labels += [draw_level(axes, float(line.y[0]), text=name, colour=MUTED) for name, line in offered.items()]
    _finish(axes, folder, labels)
    meters = {f"meter {meter.name.lower()}": line for meter, line in dots.items()}
    return Chart(axes, of_lines("second", "per_s", {**lines, **meters, **offered}))


def _traffic(folder: RunFolder) -> dict[str, Line]:
    point_s = seconds_per_point(folder.spool)
    lines = {name: traffic_line(folder.spool["traffic"], name, point_s) for name in TRAFFIC_LABELS}
    return {name: line for name, line in lines.items() if line is not None}


def _meters(folder: RunFolder) -> dict[Meter, Line]:
    interval = part(folder.run, "settings").get("sampling_interval")
    return meter_dots(folder.spool["throughput"], interval) if is_number(interval) else {}


def _offered(folder: RunFolder) -> dict[str, Line]:
    """A ramp's rate, or a tape's, is another from second to second."""
    offered = part(folder.run, "rates").get("offered_orders_per_s")
    text = "offered" if is_steady(part(folder.run, "settings").get("arrivals", "fixed")) else "mean offered"
    return {text: level(offered)} if is_number(offered) else {}


def cpu(folder: RunFolder) -> Chart | None:
    """Cores over time where a component said so each second; else its mean over the run."""
    axes = empty_axes("cores", "seconds")
    found = {name: line for name in COMPONENT_COLOURS if (line := _cores(folder, name))}
    if not found:
        return None
    _finish(axes, folder, [_draw_cores(axes, line, name) for name, line in found.items()])
    return Chart(axes, of_lines("second", "cores", found))


def _cores(folder: RunFolder, name: str) -> Line | None:
    line = cpu_line(folder.spool["process"], name, seconds_per_point(folder.spool))
    mean = mean_cores(folder.run).get(name)
    return line or (level(mean) if mean is not None else None)


def _draw_cores(axes: Axes, line: Line, name: str) -> EndLabel:
    if is_level(line):
        return draw_level(axes, float(line.y[0]), text=name, colour=COMPONENT_COLOURS[name])
    return draw(axes, line, text=name, colour=COMPONENT_COLOURS[name])


def _finish(axes: Axes, folder: RunFolder, labels: list[EndLabel]) -> None:
    linear_y(axes)
    time_x(axes, length_s(folder))
    label_ends(axes, labels)
