"""The load and what it cost: rates, and CPU by component."""

from __future__ import annotations

from typing import Any

from matplotlib.axes import Axes

from exchange.measurements import Meter
from experiments.page.canvas import empty_axes, linear_y, time_x
from experiments.page.colours import BLUE, GREEN, MUTED, ORANGE, PURPLE
from experiments.page.formats import is_number
from experiments.page.labelled_lines import EndLabel, draw, draw_level, label_ends
from experiments.page.load_series import cpu_line, meter_dots, traffic_line
from experiments.page.run_folder import RunFolder, part
from experiments.page.series import length_s, seconds_per_point
from experiments.page.story import mean_cores

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


def rates(folder: RunFolder) -> Axes | None:
    """Orders and answers a second beside what was offered; the meters as dots."""
    axes = empty_axes("per second", "seconds")
    labels = _draw_traffic(axes, folder)
    dots = _draw_meters(axes, folder)
    if not labels and not dots:
        return None
    return _finished(axes, folder, [*labels, *_draw_offered(axes, folder)])


def _draw_traffic(axes: Axes, folder: RunFolder) -> list[EndLabel]:
    point_s = seconds_per_point(folder.spool)
    lines = {name: traffic_line(folder.spool["traffic"], name, point_s) for name in TRAFFIC_LABELS}
    drawn = {name: line for name, line in lines.items() if line is not None}
    return [draw(axes, drawn[n], text=TRAFFIC_LABELS[n], colour=TRAFFIC_COLOURS[n]) for n in drawn]


def _draw_meters(axes: Axes, folder: RunFolder) -> bool:
    interval = part(folder.run, "settings").get("sampling_interval")
    dots = meter_dots(folder.spool["throughput"], interval) if is_number(interval) else {}
    for meter, line in dots.items():
        axes.plot(line.x, line.y, linestyle="none", clip_on=False, **METER_STYLES[meter])
    return bool(dots)


def _draw_offered(axes: Axes, folder: RunFolder) -> list[EndLabel]:
    offered = part(folder.run, "settings").get("orders_per_s")
    return [draw_level(axes, offered, text="offered", colour=MUTED)] if is_number(offered) else []


def cpu(folder: RunFolder) -> Axes | None:
    """Cores over time where a component said so each second; else its mean over the run."""
    axes = empty_axes("cores", "seconds")
    labels = [label for name in COMPONENT_COLOURS if (label := _draw_component(axes, folder, name))]
    return _finished(axes, folder, labels) if labels else None


def _draw_component(axes: Axes, folder: RunFolder, name: str) -> EndLabel | None:
    line = cpu_line(folder.spool["process"], name, seconds_per_point(folder.spool))
    if line is not None:
        return draw(axes, line, text=name, colour=COMPONENT_COLOURS[name])
    mean = mean_cores(folder.run).get(name)
    return draw_level(axes, mean, text=name, colour=COMPONENT_COLOURS[name]) if mean is not None else None


def _finished(axes: Axes, folder: RunFolder, labels: list[EndLabel]) -> Axes:
    linear_y(axes)
    time_x(axes, length_s(folder))
    label_ends(axes, labels)
    return axes
