"""Rates and CPU over time, of the spool's counts, meters and process records."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from exchange.instances import role_of
from exchange.measurements import Meter
from exchange.seconds import History, Reading
from reports.drawing.series import Line, line_where_measured, middles_s
from reports.run.run_folder import Record

THROUGHPUT_METERS = tuple(Meter)[:4]
MAX_DOTS = 30  # of a meter


def traffic_line(traffic: list[Record], name: str, point_s: int) -> Line | None:
    """A count per second; the last point is left out, for the run ended somewhere within it."""
    if not traffic:
        return None
    points = [record["payload"]["second"] // point_s for record in traffic]
    per_s = np.bincount(points, weights=[record["payload"][name] for record in traffic]) / point_s
    per_s[np.bincount(points) == 0] = np.nan
    finished = max(len(per_s) - 1, 1)
    return line_where_measured(middles_s(finished, point_s), per_s[:finished])


def meter_dots(throughput: list[Record], sampling_interval: float) -> dict[Meter, Line]:
    """What each meter said, when its window closed, by the reporter's clock."""
    by_meter = {meter: [r for r in throughput if r["payload"]["meter"] == meter] for meter in THROUGHPUT_METERS}
    first = next(iter(by_meter[Meter.GATEWAY_ORDERS_SENT]), None)
    if first is None or not first["payload"]["rate_per_s"]:
        return {}
    # The first window of meter 1 opened with the first order and holds one sampling interval of them.
    start_ns = first["wall_ns"] - 1e9 * sampling_interval / first["payload"]["rate_per_s"]
    return {meter: _dots(records, start_ns) for meter, records in by_meter.items() if records}


def _dots(records: list[Record], start_ns: float) -> Line:
    """Of several sources the readings of one number, which are of about the same time, are added."""
    alike = list(zip(*by_source(records).values(), strict=False))
    shown = alike[:: len(alike) // MAX_DOTS + 1]
    at_s = np.array([np.mean([r["wall_ns"] - start_ns for r in readings]) for readings in shown], np.float64) / 1e9
    return Line(at_s, np.array([sum(r["payload"]["rate_per_s"] for r in readings) for readings in shown], np.float64))


def cpu_line(process: list[Record], role: str, point_s: int) -> Line | None:
    """Cores kept busy between neighbouring records of a component; of several of a role, their sum."""
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
    middles_s = sorted(total)
    return line_where_measured(np.array(middles_s), np.array([total[middle_s] for middle_s in middles_s]))


def by_source(records: list[Record]) -> dict[str, list[Record]]:
    found: dict[str, list[Record]] = {}
    for record in records:
        found.setdefault(record["source"], []).append(record)
    return found
