"""The contents of a run's folder that its page is made from: run.json, and the spool's records of the kinds drawn."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from exchange.json_records import Record, section
from exchange.record_kinds import RunRecord
from exchange_simulation.launching.errors import UserError
from exchange_simulation.launching.record.reading import Spool, read_spool, record_for_report
from exchange_simulation.reports.drawing.colours import BLUE, transport_colour
from exchange_simulation.reports.formats.numbers import is_number
from exchange_simulation.reports.gate_outcomes import GateOutcomes, read_outcomes

if TYPE_CHECKING:
    from exchange_simulation.reports.drawing.chart import Floats

MOST_POINTS = 500
"""The most points of a line; in a longer run, a point stands for several seconds."""
LEAST_SECONDS = 4
"""The fewest seconds for a chart over time: three dots are no line."""

UNRECORDED_RUN: Record = {
    "status": "partial",
    "reasons": ["The run ended before it wrote its record, run.json; only what the spool holds is shown."],
}


@dataclass(frozen=True)
class RunFolder:
    """`run` is the content of run.json."""

    run: Record
    spool: Spool
    gate: GateOutcomes = field(default_factory=GateOutcomes)
    """The outcomes of the run's bounds; empty if it had none."""


def read_run_folder(folder: Path, spool: Spool | None = None) -> RunFolder:
    """Read run.json, and the spool unless it was read already. A run that was killed left no run.json.

    UserError if there is neither record nor spool, or if one of them cannot be read.
    """
    record_file = folder / "run.json"
    if not record_file.exists() and not (folder / "spool").is_dir():
        raise UserError(f"{folder} is not a run's folder: it has neither run.json nor a spool")
    run = record_for_report(record_file, RunRecord) if record_file.exists() else UNRECORDED_RUN
    return RunFolder(run, read_spool(folder) if spool is None else spool, read_outcomes(folder))


def is_scheduled(run: Record) -> bool:
    """Return whether orders had due times. A run as fast as possible has an offered rate of null, and no lag.

    A run without a record counts as scheduled.
    """
    settings = section(run, "settings")
    if "orders_per_s" not in settings:
        return True
    return settings["orders_per_s"] is not None


def warm_up_s(run: Record) -> float:
    seconds = section(run, "settings").get("warm_up_s")
    return seconds if is_number(seconds) else 0.0


def mean_cores(run: Record) -> dict[str, float]:
    """Return the cores that each component used, as a mean over the run."""
    duration_s = run.get("duration_s")
    if not is_number(duration_s) or duration_s <= 0:
        return {}
    cores = {}
    for component in section(run, "components"):
        cpu_s = section(run["components"], component).get("cpu_s")
        if is_number(cpu_s):
            cores[component] = cpu_s / duration_s
    return cores


def seconds_begun(spool: Spool) -> int:
    """Return the number of the run's seconds, the last of which may be incomplete."""
    records = [*spool["completion"], *spool["traffic"], *spool["process"]]
    if not records:
        return 0
    return 1 + max(int(record["payload"]["second"]) for record in records)


def seconds_per_point(spool: Spool, most_points: int = MOST_POINTS) -> int:
    """Return how many seconds a point of a line stands for, so that the line has at most `most_points` points."""
    return max(1, math.ceil(seconds_begun(spool) / most_points))


def length_s(folder: RunFolder) -> float:
    """Return the time from the first order to the last answer; the seconds begun if no last answer came."""
    duration_s = folder.run.get("duration_s")
    return duration_s if is_number(duration_s) else seconds_begun(folder.spool)


def has_charts_over_time(folder: RunFolder) -> bool:
    """Return whether the run has enough seconds for charts over time."""
    return seconds_begun(folder.spool) >= LEAST_SECONDS


def has_rates_per_s(folder: RunFolder) -> bool:
    """Return whether the run lasted a second, so that a rate a second says something."""
    return length_s(folder) >= 1.0


def axis_length_s(folder: RunFolder) -> float:
    """Return the length of the axis of charts over the run: to the end of the run's last second."""
    return max(length_s(folder), float(seconds_begun(folder.spool)))


def completion_clock(folder: RunFolder) -> str:
    """Return the clock of the completion times: from due, or from handing over if nothing was due."""
    has_due_times = any(record["payload"]["clock"] == "due" for record in folder.spool["completion"])
    return "due" if has_due_times else "handed_over"


def run_colour(run: Record) -> str:
    return transport_colour(str(section(run, "settings").get("transport"))) or BLUE


def middles_s(points: int, point_s: int) -> Floats:
    """Return x for each of a line's points: the middle of the `point_s` seconds that the point stands for."""
    return np.asarray((np.arange(points) + 0.5) * point_s, np.float64)
