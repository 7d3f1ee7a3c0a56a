"""All cells of a benchmark, measured in turns: cells that are compared are measured close in time."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from exchange.json_records import Record
from exchange_simulation.launching.interrupts import raise_if_interrupted
from exchange_simulation.launching.notices import say
from exchange_simulation.launching.record.noise import LEAST_WINDOW_S, why_set_aside
from exchange_simulation.messaging.benchmark import BenchmarkDefinition
from exchange_simulation.messaging.cell import Cell, Figures
from exchange_simulation.messaging.measurements import Measurements
from exchange_simulation.messaging.measuring import COMPLETE, INVALID, LOST_ROLE, is_timed, measure
from exchange_simulation.messaging.point import NETWORK
from exchange_simulation.messaging.report import reasons_in_words
from exchange_simulation.messaging.setups import Setups
from exchange_simulation.repeats.noise_rule import Redos
from exchange_simulation.repeats.turns import in_turns
from exchange_simulation.reports.formats.numbers import number_text
from exchange_simulation.reports.formats.times import duration_in_words

TOO_SHORT = "too short to be timed: give a "
LONGER = 4
"""A measurement too short to be timed is made again, with this many times the messages or the length of the sample."""
TIMES_LONGER = "times_longer"
"""The field of a try that says how many times longer than planned it was made, since earlier ones were too short."""
MOST_TIMES_LONGER = LONGER**4
"""The default number of messages is multiplied by at most this."""
LONGEST_SAMPLE_S = 10.0
"""A sample is made no longer than this."""
SEED = 1
"""The seed of the order in which cells are measured."""
SAY_TIME_LEFT_FROM_S = 60.0
"""The time left is printed if it is at least this."""


@dataclass(frozen=True)
class CellStep:
    """One repeat of one cell; `place` is the cell's place in the plan."""

    repeat: int
    place: int

    @property
    def name(self) -> str:
        return f"{self.repeat}-{self.place}"


def steps_of(cells: Sequence[Cell], repeats: int) -> list[CellStep]:
    """All measurements in their order. Cells of one point, over several transports and networks, follow each other."""
    places: dict[str, list[int]] = {}
    for place, cell in enumerate(cells):
        point = {name: value for name, value in cell.point.items() if name != NETWORK}
        places.setdefault(repr(point), []).append(place)
    return [CellStep(repeat, place) for repeat, place in in_turns(list(places.values()), repeats, SEED)]


def _steps_left(measurements: Measurements, repeats: int) -> tuple[list[CellStep], dict[str, list[Record]]]:
    """Return the steps without a wrong answer so far, and the tries of those steps that have some, by step.

    A step whose answer was wrong is not measured again.
    """
    steps: list[CellStep] = []
    valid: dict[str, list[Record]] = {}
    for step in steps_of(measurements.cells, repeats):
        tries = [record for record in measurements.tries[step.place] if record["repeat"] == step.repeat]
        if any(record["status"] != COMPLETE for record in tries):
            continue
        steps.append(step)
        if tries:
            valid[step.name] = tries
    return steps, valid


def measure_in_turns(
    benchmark: BenchmarkDefinition,
    repeats: int,
    setups: Setups,
    measurements: Measurements,
    on_each: Callable[[], None],
) -> str | None:
    """Measure every cell once, then every cell again, and so on, since a machine's speed drifts.

    Noisy measurements are made again at the end of their repeat, as the rule of `measurements` says. Steps that
    `measurements` has tries of are left out, as far as that rule does not want them again. `on_each` is called after
    each measurement. Returns the reason why the measurements ended early, or None. KeyboardInterrupt once
    a signal asked for an end.
    """
    steps, valid = _steps_left(measurements, repeats)
    redos: Redos[CellStep] = Redos(measurements.rule, valid)
    planned = sum(step.name not in valid for step in steps)
    began_s = time.monotonic()
    for done, step in enumerate(redos.in_turn(steps), 1):
        raise_if_interrupted()
        cell, record = _long_enough(benchmark, measurements.cells[step.place], setups)
        measurements.cells[step.place] = cell
        measurements.tries[step.place].append({"repeat": step.repeat, TIMES_LONGER: cell.times_longer, **record})
        redos.note(step, record, is_valid=record["status"] == COMPLETE)
        is_made_again = redos.wants(step)
        if is_made_again:
            planned += 1
        on_each()
        left_s = (time.monotonic() - began_s) * max(0.0, planned / done - 1)
        if record["status"] == LOST_ROLE:
            left_s = 0.0
        _report_progress(benchmark, cell, step.repeat, record, left_s, is_made_again)
        if record["status"] == LOST_ROLE:
            return f"{cell}: {record['reasons'][0]}"
    return None


def _long_enough(benchmark: BenchmarkDefinition, cell: Cell, setups: Setups) -> tuple[Cell, Record]:
    """Measure a cell; while it is too short to be timed, measure it again with more messages or a longer sample.

    Messages are also added until the noise beside them can be told, if their number may grow.
    Returns (the cell that was measured last, its record). The next repeat begins with this cell. The record is invalid
    if the cell is too short to be timed, and may not be made longer.
    """
    has_count = any(option.name == "count" for option in benchmark.options)
    while True:
        record = measure(benchmark, cell, setups.of(cell))
        if record["status"] != COMPLETE:
            return cell, record
        has_time = is_timed(benchmark, record["figures"])
        if has_time and not (has_count and _hides_noise(record)):
            return cell, record
        if not _may_be_longer(cell, has_count):
            if has_time:
                return cell, record
            return cell, {**record, "status": INVALID, "reasons": [_too_short(cell, has_count)], "figures": {}}
        cell = replace(cell, times_longer=cell.times_longer * LONGER)


def _hides_noise(record: Record) -> bool:
    """Whether the measurement was too short to tell what others took of the processors."""
    noise = record.get("noise")
    return noise is not None and noise["window_s"] < LEAST_WINDOW_S


def _may_be_longer(cell: Cell, has_count: bool) -> bool:
    """Whether the cell may have more messages, or a longer sample if the benchmark takes no `--count`.

    The number of messages may grow unless the user chose it. A load over time has the length that the user chose.
    """
    if cell.has_load_over_time:
        return False
    if has_count:
        return not cell.settings.get("count") and cell.times_longer < MOST_TIMES_LONGER
    return "sample_s" in cell.settings and LONGER * cell.sample_s <= LONGEST_SAMPLE_S


def _too_short(cell: Cell, has_count: bool) -> str:
    """The reason why the cell, which may not be longer, is invalid, and the option that makes it longer."""
    if cell.has_load_over_time:
        return TOO_SHORT + "longer load by --rate"
    if has_count:
        return TOO_SHORT + "larger --count"
    return TOO_SHORT + "longer --sample"


def _report_progress(
    benchmark: BenchmarkDefinition, cell: Cell, repeat: int, record: Record, left_s: float, is_made_again: bool
) -> None:
    """Print the outcome of a measurement, whether it is set aside for noise, and the time left if it is long."""
    outcome = _figures_in_words(benchmark, record["figures"]) or "; ".join(reasons_in_words(record["reasons"]))
    if is_made_again:
        outcome += f"; set aside: {why_set_aside(record)}"
    if left_s >= SAY_TIME_LEFT_FROM_S:
        outcome += f"; about {duration_in_words(left_s)} left"
    say(f"{benchmark.name} {repeat}: {cell}: {outcome}")


def _figures_in_words(benchmark: BenchmarkDefinition, figures: Figures) -> str:
    """The figures of the columns with an interval."""
    columns = [column for column in benchmark.columns if column.with_interval and column.name in figures]
    return ", ".join(f"{number_text(figures[column.name])} {column.title}" for column in columns)
