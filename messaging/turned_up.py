"""A benchmark whose load `exchange capacity` turns up: a probe is one repeat of one cell, with a folder of its own."""

from __future__ import annotations

import bisect
import contextlib
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import log
from pathlib import Path

import click

from exchange.json_records import LoadAxis, Record
from messaging.benchmark import Benchmark, Scale, Settings
from messaging.benchmarks import benchmark_of, names
from messaging.measuring import COMPLETE, PARTIAL
from messaging.options import parameters, settings_of
from messaging.report import write_page
from messaging.results import FILE
from messaging.running import record_of
from messaging.setup import plan_of
from runs.errors import UserError
from runs.files import write_json
from runs.launch.brokers import Brokers
from runs.notices import heard_by
from runs.record.noise import noise_share


@dataclass
class BenchmarkLoad:
    """A benchmark with its settings; the value of its scale's option is the load."""

    benchmark: Benchmark
    settings: Settings
    start: float | None = None
    """Where the search begins, if not where the scale says."""

    @cached_property
    def scale(self) -> Scale:
        """UserError if the benchmark has none."""
        if self.benchmark.scale is None:
            able = [name for name in names() if benchmark_of(name).scale]
            raise UserError(f"the load of {self.benchmark.name} cannot be turned up; --bench takes {', '.join(able)}")
        return self.benchmark.scale

    @property
    def begins_at(self) -> float:
        return self.start or float(self.scale.start)

    @property
    def axis(self) -> LoadAxis:
        return LoadAxis(self.scale.option, self.scale.option, self.scale.option, self.scale.ceiling, whole=True)

    def least(self) -> float:
        """UserError unless there is exactly one cell to measure, and the benchmark takes it."""
        cells = plan_of(self.benchmark, self._settings_at(self.begins_at)).cells
        if len(cells) != 1:
            raise UserError(
                f"a capacity is of one cell, and these options make {len(cells)}: {'; '.join(map(str, cells))}"
            )
        return 1.0

    def known(self) -> Record:
        name, settings = self.benchmark.name, {key: value for key, value in self.settings.items() if value is not None}
        (cell,) = plan_of(self.benchmark, self._settings_at(self.begins_at)).cells
        others = ", ".join(str(value) for key, value in cell.point.items() if key != self.scale.option)
        titles = {column.name: column.title for column in self.benchmark.columns}
        return {
            "benchmark": name, "subject": f"{name} over {cell.transport}" + f" ({others})" * bool(others),
            "objective": self.scale.objective(settings), "settings": {**settings, "transport": cell.transport},
            "columns": {titles.get(each, each.replace("_", " ")): each for each in self.scale.columns},
        }  # fmt: skip

    def _settings_at(self, value: float) -> Settings:
        return {**self.settings, self.scale.option: (round(value),), "repeats": 1}

    @contextlib.contextmanager
    def ready(self) -> Iterator[None]:
        """Keep a private broker for all probes."""
        with Brokers() as self._brokers:
            yield

    def ceiling(self, folder: Path) -> float:  # noqa: ARG002
        """The highest value that the benchmark does not refuse before the start."""
        values = range(1, self.scale.most + 1)
        return float(max(1, bisect.bisect_left(values, True, key=self._is_refused)))

    def _is_refused(self, value: int) -> bool:
        try:
            self.benchmark.points(self._settings_at(value))
        except UserError:
            return True
        return False

    def probe(self, folder: Path, value: float) -> Record:
        """UserError if it ended early."""
        with heard_by(lambda _: None):  # the search says what came of it
            record = record_of(self.benchmark, self._settings_at(value), folder.name, self._brokers, lambda _: None)
        write_json(folder / FILE, record)
        write_page(folder, record)
        if record["status"] == PARTIAL:
            raise UserError(record["reasons"][0])
        (row,) = record["rows"]
        (repeat,) = row["repeats"]
        return {
            self.scale.option: round(value), "holds": record["status"] == COMPLETE,
            "why": next(iter(repeat["reasons"]), None),
            "log_ratio": log(repeat["strain"]) if repeat["strain"] else None,
            "noise_share": noise_share({**record, "noise": repeat["noise"]}), "status": record["status"],
            "figures": {name: estimate["median"] for name, estimate in row["figures"].items()},
        }  # fmt: skip


def load_of(text: str, start: float | None) -> BenchmarkLoad:
    """The benchmark and its options, as after `exchange bench`; without more words it is measured as with --quick."""
    try:
        name, *words = shlex.split(text)
    except ValueError as error:  # no word at all, or a quotation that does not end
        raise UserError(f"--bench is {text!r}: give NAME OPTIONS, as 'supply-chain --bound 1'") from error
    if name not in names():
        raise UserError(f"--bench is {text!r}: {name!r} is no benchmark; there are {', '.join(names())}")
    benchmark = benchmark_of(name)
    options = parameters(benchmark)
    with click.Command(name, params=options).make_context(name, ["--quick", *words]) as context:
        return BenchmarkLoad(benchmark, settings_of(benchmark, context.params), start)


def load_again(record: Mapping[str, Record]) -> BenchmarkLoad:
    """The load of a recorded search."""
    settings = {name: tuple(value) if isinstance(value, list) else value for name, value in record["settings"].items()}
    return BenchmarkLoad(benchmark_of(str(record["benchmark"])), {**settings, "transport": (settings["transport"],)})
