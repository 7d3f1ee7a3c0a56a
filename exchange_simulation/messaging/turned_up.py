"""A benchmark as the load of `exchange capacity`: a probe is one repeat of one cell, with a folder of its own."""

from __future__ import annotations

import bisect
import contextlib
import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import log
from pathlib import Path
from typing import Any, Protocol

from exchange.allowed import meant
from exchange.json_records import Record
from exchange.load_axis import LoadAxis
from exchange.percentiles import FIGURES
from exchange.search_times import SearchTimes
from exchange_simulation.launching.errors import UserError
from exchange_simulation.launching.files import write_json
from exchange_simulation.launching.launch.brokers import Brokers
from exchange_simulation.launching.notices import notices_to
from exchange_simulation.launching.record.noise import noise_share
from exchange_simulation.launching.transport_checks import check_settings_fit_a_transport
from exchange_simulation.messaging.benchmark import BenchmarkDefinition, CapacityScale
from exchange_simulation.messaging.benchmark_record import measure_benchmark
from exchange_simulation.messaging.benchmarks import benchmark_of, names
from exchange_simulation.messaging.cell import Cell, least_duration_s, messages_at
from exchange_simulation.messaging.flow import ceiling_per_s
from exchange_simulation.messaging.measuring import COMPLETE, PARTIAL
from exchange_simulation.messaging.options import settings_again, settings_from_words
from exchange_simulation.messaging.paced import RATE_SCALE
from exchange_simulation.messaging.payload import STAMPED
from exchange_simulation.messaging.point import RATE, Settings, value_in_words
from exchange_simulation.messaging.report import write_page
from exchange_simulation.messaging.results import FILE
from exchange_simulation.messaging.setup import carried_per_s, plan_of

SATURATED = "saturated"
USUAL_SIZE = 64
"""Bytes of a message, unless the user gives sizes."""
RECORD_WITHOUT_STAMPS: Record = {"status": COMPLETE, "completion_us": {}, "lag_us": dict.fromkeys(FIGURES, 0.0)}
"""The record of a run whose messages have no room for a stamp."""
LONGEST_S = 10.0
"""The longest time for which a probe offers messages, to have as many as the objective needs."""


class Objective(Protocol):
    """A bound on a figure that the user gives, as `p99 <= 5ms`."""

    @property
    def words(self) -> str: ...

    @property
    def needed_orders(self) -> int: ...

    def broken_by(self, record: Record) -> str | None: ...

    def log_ratio(self, record: Record) -> float | None: ...


@dataclass
class BenchmarkLoad:
    """A benchmark with its settings; the value of its scale's option is the load."""

    benchmark: BenchmarkDefinition
    settings: Settings
    start: float | None = None
    """The value at which the search begins; None for that of the scale."""
    objective: Objective | None = None
    """The user's objective, for a benchmark whose scale is its rate."""

    @cached_property
    def scale(self) -> CapacityScale:
        """UserError if the benchmark has none."""
        if self.benchmark.scale is None:
            with_scale = [name for name in names() if benchmark_of(name).scale]
            raise UserError(
                f"the load of {self.benchmark.name} cannot be turned up; --bench takes {', '.join(with_scale)}"
            )
        return self.benchmark.scale

    @property
    def _objective_in_words(self) -> str:
        """The user's objective, or that of the scale."""
        if self.scale.objective is None:
            return self.objective.words if self.objective else "loss = 0"
        return self.scale.objective(self.settings)

    @property
    def begins_at(self) -> float:
        return self.start or float(self.scale.start)

    @property
    def axis(self) -> LoadAxis:
        if self.scale.is_whole:
            return LoadAxis(
                self.scale.option, self.scale.option, self.scale.option, self.scale.ceiling_in_words, whole=True
            )
        return LoadAxis(RATE, "rate", self.scale.unit, self.scale.ceiling_in_words)

    def _cell(self) -> Cell:
        """The cell to measure. UserError unless there is exactly one, and the benchmark takes it."""
        cells = plan_of(self.benchmark, self._settings_at(self.begins_at)).cells
        if len(cells) != 1:
            raise UserError(
                f"a capacity is of one cell, and these options make {len(cells)}: {'; '.join(map(str, cells))}"
            )
        return cells[0]

    def lowest_value(self) -> float:
        """UserError unless there is exactly one cell, which the benchmark takes and the objective can judge."""
        cell = self._cell()
        if self.objective and cell.size < STAMPED:
            problem = self.objective.broken_by(RECORD_WITHOUT_STAMPS)
            if problem:
                too_small = f"messages of {cell.size} bytes have no room for a time"
                raise UserError(f"--slo {problem}: {too_small}; give --sizes of {STAMPED}B or more")
        return max(float(self._lowest), self._needed_messages / LONGEST_S)

    @cached_property
    def _lowest(self) -> int:
        """The lowest value that the benchmark does not refuse, since some topologies need more than 1."""
        if not self.scale.is_whole:
            return 1
        for value in range(1, self.scale.highest):
            if not self._is_refused(value):
                return value
        return 1

    @property
    def _needed_messages(self) -> int:
        """The number of messages that a probe needs for the objective."""
        return self.objective.needed_orders if self.objective else 0

    def record_header(self) -> Record:
        name = self.benchmark.name
        settings = {key: value for key, value in self.settings.items() if value is not None}
        cell = self._cell()
        fixed_values = []
        for key, value in cell.point.items():
            if key not in (self.scale.option, RATE):
                fixed_values.append(value if isinstance(value, str) else value_in_words(key, value))
        subject = f"{name} over {cell.transport}"
        if fixed_values:
            subject += f" ({', '.join(fixed_values)})"
        titles = {column.name: column.title for column in self.benchmark.columns}
        return {
            "benchmark": name,
            "subject": subject,
            "objective": self._objective_in_words,
            "needed_orders": self._needed_messages,
            "settings": {**settings, "transport": cell.transport},
            "columns": {titles.get(figure, figure.replace("_", " ")): figure for figure in self.scale.columns},
        }

    def _settings_at(self, value: float) -> Settings:
        """The settings of one probe at a value of the load."""
        once = {**self.settings, "repeats": 1, "redo_noisy": False}  # the search itself measures noisy probes again
        if self.scale.is_whole:
            return {**once, self.scale.option: (round(value),)}
        at_rate = {**once, self.scale.option: (value,)}
        count = self.settings["count"] or messages_at(value, at_rate)
        return {**at_rate, "count": max(count, self._needed_messages)}

    def times(self) -> SearchTimes:
        """How long a probe takes. The ceiling is computed, and takes no time."""
        at_lowest_s = self._probe_s(self.lowest_value())
        at_ceiling_s = self._probe_s(self.ceiling(Path()))
        return SearchTimes(
            shortest_probe_s=min(at_lowest_s, at_ceiling_s),
            longest_probe_s=max(at_lowest_s, at_ceiling_s),
            longest_ceiling_s=0.0,
        )

    def _probe_s(self, value: float) -> float:
        """How long a probe at a value of the load takes at least."""
        plan = plan_of(self.benchmark, self._settings_at(value))
        return sum(least_duration_s(cell) for cell in plan.cells)

    @contextlib.contextmanager
    def ready(self) -> Iterator[None]:
        """Keep a private broker for all probes."""
        with Brokers() as self._brokers:
            yield

    def ceiling(self, folder: Path) -> float:  # noqa: ARG002
        """The highest value that the benchmark accepts; for a rate, what a publisher can make and a link can carry."""
        if not self.scale.is_whole:
            cell = self._cell()
            return min(ceiling_per_s(cell.size), carried_per_s(cell))
        lowest = self._lowest
        values = range(lowest, self.scale.highest + 1)
        accepted = bisect.bisect_left(values, True, key=self._is_refused)  # values above a refused value are refused
        return float(max(lowest, lowest + accepted - 1))

    def _is_refused(self, value: int) -> bool:
        try:
            self.benchmark.points(self._settings_at(value))
        except UserError:
            return True
        return False

    def probe(self, folder: Path, value: float) -> Record:
        """Measure at a value of the load; returns the probe's record. UserError if the measurement ended early."""
        with notices_to(lambda _: None):  # the search itself reports the outcome
            record = measure_benchmark(
                self.benchmark, self._settings_at(value), folder.name, self._brokers, lambda _: None
            )
        write_json(folder / FILE, record)
        write_page(folder, record)
        if record["status"] == PARTIAL:
            raise UserError(record["reasons"][0])
        (row,) = record["rows"]
        (repeat,) = row["repeats"]
        if self.scale.objective:
            judgement = self._judged_by_scale(value, record, repeat)
        else:
            judgement = self._judged_by_user(value, repeat)
        return {
            **judgement,
            "noise_share": noise_share({**record, "noise": repeat["noise"]}),
            "status": record["status"],
            "figures": {name: estimate["median"] for name, estimate in row["figures"].items()},
        }

    def _judged_by_scale(self, value: float, record: Record, repeat: Record) -> Record:
        """Whether the answer is right, which is the objective of the benchmark's scale."""
        return {
            self.scale.option: round(value),
            "holds": record["status"] == COMPLETE,
            "why": next(iter(repeat["reasons"]), None),
            "log_ratio": log(repeat["strain"]) if repeat["strain"] else None,
        }

    def _judged_by_user(self, value: float, repeat: Record) -> Record:
        """Whether the repeat meets the user's objective; without an objective, nothing may be lost or late."""
        figures = repeat["figures"]
        saturated = repeat["saturated"]
        due = {figure: figures.get(f"due_{figure}_us") for figure in FIGURES}
        lag = {figure: figures.get(f"lag_{figure}_us") for figure in FIGURES}
        as_run = {
            "status": SATURATED if saturated else repeat["status"],
            "reasons": saturated or repeat["reasons"],
            "completion_us": {"due": due},
            "lag_us": lag,
        }
        if self.objective is not None:
            why = self.objective.broken_by(as_run)
            log_ratio = self.objective.log_ratio(as_run)
        else:
            why = next(iter(as_run["reasons"]), None)
            log_ratio = None
        return {RATE: value, "holds": why is None, "why": why, "log_ratio": log_ratio}


def load_of(text: str, start: float | None, objective: Objective | None = None) -> BenchmarkLoad:
    """Parse a benchmark with its options, as after `exchange bench`; options that are left open are as with --quick."""
    try:
        name, *words = shlex.split(text)
    except ValueError as error:  # no word at all, or a quotation without an end
        raise UserError(f"--bench is {text!r}: give NAME OPTIONS, as 'supply-chain --bound 1'") from error
    if name not in names():
        there_are = f"there are {', '.join(names())}{meant(name, names())}"
        raise UserError(f"--bench is {text!r}: {name!r} is no benchmark; {there_are}")
    benchmark = benchmark_of(name)
    if objective is not None and benchmark.scale is not None and benchmark.scale.objective is not None:
        raise UserError(f"--slo is no option for {name}, which has an objective of its own: --bound")
    settings, typed = settings_from_words(benchmark, ["--quick", *words])
    if "redo_noisy" in typed:
        raise UserError(
            f"--bench is {text!r}: --redo-noisy and --keep-noisy are options of exchange capacity itself, which makes "
            "noisy probes again; give them outside of --bench"
        )
    check_settings_fit_a_transport(settings, settings["transport"])
    scale = benchmark.scale
    if scale is RATE_SCALE and scale.option in typed:
        raise UserError(f"--bench is {text!r}: a search turns --rate up itself; leave it out (--from begins elsewhere)")
    if scale is not None and scale.is_whole:
        points = benchmark.points({**settings, scale.option: (scale.start,)})
        if any(point[scale.option] != scale.start for point in points):
            raise UserError(
                f"--bench is {text!r}: its load does not depend on --{scale.option}; it cannot be turned up"
            )
    return BenchmarkLoad(benchmark, {**settings, **_one_of_each(benchmark, settings, typed)}, start, objective)


def _one_of_each(benchmark: BenchmarkDefinition, settings: Settings, typed: set[str]) -> Settings:
    """Values that reduce the settings to one cell: the first transport, 64 bytes, and the largest value of other lists.

    Lists that the user gave are not reduced, nor lists that make no points, as the supply chain's interactions.
    """
    lists = {key: value for key, value in settings.items() if isinstance(value, list | tuple) and len(value) > 1}
    usual_values = {"transport": settings["transport"][0], "sizes": USUAL_SIZE}
    points = len(benchmark.points(settings))
    reduced: dict[str, Any] = {}
    for key, values in lists.items():
        if key in typed:
            continue
        value = usual_values[key] if key in usual_values else max(values)
        makes_fewer_points = len(benchmark.points({**settings, key: (value,)})) < points
        if key == "transport" or makes_fewer_points:
            reduced[key] = (value,)
    return reduced


def load_again(record: Mapping[str, Record], objective_of: Callable[[str], Objective]) -> BenchmarkLoad:
    """The load of a recorded search; `objective_of` reads the objective that a user gave it."""
    benchmark = benchmark_of(str(record["benchmark"]))
    settings = settings_again(record, benchmark)
    by_user = benchmark.scale is not None and benchmark.scale.objective is None
    objective = objective_of(str(record["objective"])) if by_user else None
    return BenchmarkLoad(benchmark, {**settings, "transport": (settings["transport"],)}, objective=objective)
