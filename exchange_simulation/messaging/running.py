"""`exchange bench NAME` and `exchange bench suite`: measure cells in turns; then record, table, page."""

from __future__ import annotations

import importlib
import itertools
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import click

from exchange.allowed import BadSetting
from exchange.json_records import Record
from exchange.words import counted
from exchange_simulation.launching.errors import UserError, left_out, sentence, users_mistake
from exchange_simulation.launching.files import dated_name
from exchange_simulation.launching.interrupts import ended_as_by_ctrl_c
from exchange_simulation.launching.launch.brokers import Brokers
from exchange_simulation.launching.notices import say
from exchange_simulation.launching.record.machine import host_facts, now, versions
from exchange_simulation.launching.transport_settings import check_some_have
from exchange_simulation.messaging.benchmark import Benchmark, Cell, Figures, Settings, known_s
from exchange_simulation.messaging.benchmarks import benchmark_of, names
from exchange_simulation.messaging.measuring import COMPLETE, INVALID, PARTIAL, is_timed, measure
from exchange_simulation.messaging.options import settings_again, settings_in_words
from exchange_simulation.messaging.report import PAGE, is_long, reasons_in_words, show, write_page
from exchange_simulation.messaging.results import Measurements, ResultsFolder, lacks_intervals
from exchange_simulation.messaging.setup import Plan, Setup, check_cells, plan_of
from exchange_simulation.reports.exports import print_json
from exchange_simulation.reports.formats import duration_in_words, number
from transports.base import TransportError
from transports.registry import scheme_of, transport_of

SCHEMA = 1
INTERRUPTED = "interrupted"
FAULTS = (click.ClickException, TransportError, OSError, BadSetting)
"""Errors that end a benchmark with a sentence."""
TOO_SHORT = "too short to be timed: give a "
LONGER, MOST_TIMES_LONGER = 4, 4**4
"""A measurement that was too short to be timed is made again with so many times the messages, up to so many times."""
LONGEST_SAMPLE_S = 10.0
"""A sample of the user's is made no longer than this."""
START_S = {True: 0.02, False: 0.01}
"""Seconds that it takes to start and end one of many roles, by whether there is a broker."""
_SAY_LEFT_FROM_S = 60.0
SUITE = "suite"
SHARED = ("quick", "repeats", "timeout_s", "amqp_client", "delivery", "network", "nagle", "cpus")
"""Options of the suite that hold for every benchmark."""

OnGrowth = Callable[[Callable[[], Record]], None]
"""Called after each measurement with a function that makes the record of everything so far."""
Job = tuple[Benchmark, Settings]


class Output(NamedTuple):
    """The folder of a benchmark, and the form in which its command shows the outcome."""

    results: str
    name: str | None
    as_json: bool


class Measured(NamedTuple):
    """A benchmark that was measured, its record written, and its page where it can be drawn."""

    folder: Path
    record: Record


def run_benchmark(benchmark: Benchmark, settings: Settings, output: Output) -> int:
    """Measure one benchmark and show it; returns the exit code: 0 if every answer was right."""
    return _show(measured_benchmark(benchmark, settings, output.results, output.name), output)


def measured_benchmark(benchmark: Benchmark, settings: Settings, results: str, name: str | None) -> Measured:
    """Measure one benchmark in a new folder of `results`."""
    check_some_have(settings, settings["transport"])
    return _measured(benchmark.name, partial(record_of, benchmark, settings), results, name)


def run_suite(settings: Settings, output: Output) -> int:
    """Measure every benchmark with its defaults, over the transports that the user asked for and that can carry it."""
    jobs = list(jobs_of_suite(settings))
    if not jobs:
        raise UserError(f"no benchmark can be measured over {', '.join(settings['transport'])}")
    check_some_have(settings, dict.fromkeys(transport for _, own in jobs for transport in own["transport"]))
    return _show(_measured(SUITE, partial(_record_of_suite, jobs, settings), output.results, output.name), output)


def run_again(record: Record, output: Output) -> int:
    """Repeat the measurements of a record; returns the exit code."""
    if "parts" in record:
        return run_suite(settings_again(record, None), output)
    benchmark = benchmark_of(record["benchmark"])
    return run_benchmark(benchmark, settings_again(record, benchmark), output)


def _measured(
    what: str, measure_all: Callable[[str, Brokers, OnGrowth], Record], results: str, name: str | None
) -> Measured:
    """Measure and write the record as it grows, then its page."""
    name = name or dated_name(what)
    with ended_as_by_ctrl_c():
        folder = ResultsFolder(Path(results), name)
        try:
            with Brokers() as brokers:
                record = measure_all(name, brokers, folder.write_now_and_then)
        except KeyboardInterrupt:
            raise click.ClickException(INTERRUPTED) from None
        except click.ClickException:
            raise
        except FAULTS as error:
            kind = click.ClickException if isinstance(error, OSError) else UserError
            raise kind(sentence(error)) from error
        folder.write(record)
        if lacks_intervals(record):
            with left_out("intervals of medians"):
                importlib.import_module("scipy")
        with left_out("page"):
            write_page(folder.folder, record)
        return Measured(folder.folder, record)


def _show(measured: Measured, output: Output) -> int:
    """Print the record as a table, or as JSON; returns the exit code."""
    if output.as_json:
        print_json(measured.record)
    else:
        show(measured.record, whole=False)
        if is_long(measured.record):
            click.echo(f"all tables: exchange report {measured.folder}")
        if (page := measured.folder / PAGE).exists():
            click.echo(f"page: {page}")
    return 0 if measured.record["status"] == COMPLETE else 1


def _head_of(name: str, benchmark: str, about: str, paper: str) -> Record:
    """The first fields of a record."""
    return {
        "schema": SCHEMA,
        "name": name,
        "benchmark": benchmark,
        "about": about,
        "paper": paper,
        "started_at": now(),
        "host": host_facts(),
        "versions": versions(),
    }


def _given(settings: Settings) -> Record:
    """The settings that the user or a default gave."""
    return {option: value for option, value in settings.items() if value is not None}


def record_of(benchmark: Benchmark, settings: Settings, name: str, brokers: Brokers, on_growth: OnGrowth) -> Record:
    """Measure; returns bench.json's content. An error is raised if nothing was measured before it."""
    head, began_s = _head_of(name, benchmark.name, benchmark.about, benchmark.paper), time.monotonic()
    plan = plan_of(benchmark, settings)
    measurements = Measurements(list(plan.cells))
    setup = Setup(plan.patterns(benchmark), settings, brokers)
    _announce(benchmark, plan, check_cells(benchmark, plan.cells), settings["repeats"])

    def record() -> Record:
        network = setup.network.facts if setup.network else None
        tail = {
            "left_out": plan.left_out,
            "settings": _given(settings),
            "network": network,
            "duration_s": time.monotonic() - began_s,
        }
        return {**head, **measurements.record(), **tail}

    try:
        with setup:
            measurements.stopped = _in_turns(benchmark, settings, setup, measurements, lambda: on_growth(record))
    except (KeyboardInterrupt, *FAULTS) as error:
        measurements.stopped = _why(error)
        if not any(measurements.repeats):
            raise
    return record()


def _announce(benchmark: Benchmark, plan: Plan, role_counts: Sequence[int], repeats: int) -> None:
    """Say how much is measured, how long that takes at least (the length of a flood is not known), and what is not."""
    cells = zip(plan.cells, role_counts, strict=True)
    least_s = repeats * sum(known_s(cell) + roles * START_S[cell.has_broker] for cell, roles in cells)
    many = f"{counted(len(plan.cells), 'cells')} of up to {counted(max(role_counts), 'roles')}"
    least = f": at least about {duration_in_words(least_s)}" if least_s >= 1 else ""
    say(f"{benchmark.name}: {many}, measured {counted(repeats, 'times')}{least}")
    for reason in plan.left_out:
        say(f"{benchmark.name}: left out, {reason}")


def _why(error: BaseException) -> str:
    return sentence(error) if isinstance(error, Exception) else INTERRUPTED


def _in_turns(
    benchmark: Benchmark, settings: Settings, setup: Setup, measurements: Measurements, on_each: Callable[[], None]
) -> str | None:
    """Measure every cell once, then every cell again, since a machine's speed drifts; returns why it ended early."""
    turns = list(itertools.product(range(1, settings["repeats"] + 1), range(len(measurements.cells))))
    began_s = time.monotonic()
    for done, (repeat, place) in enumerate(turns, 1):
        cell, record = _long_enough(benchmark, measurements.cells[place], setup)
        measurements.cells[place] = cell
        measurements.repeats[place].append({"repeat": repeat, **record})
        on_each()
        left_s = 0.0 if record["status"] == PARTIAL else (time.monotonic() - began_s) * (len(turns) / done - 1)
        _report_progress(benchmark, cell, repeat, record, left_s)
        if record["status"] == PARTIAL:
            return f"{cell}: {record['reasons'][0]}"
    return None


def _long_enough(benchmark: Benchmark, cell: Cell, setup: Setup) -> tuple[Cell, Record]:
    """Measure; if that was too short to be timed, measure again with more messages or a longer sample, if that may be.

    Returns the cell that was measured at last, with which the next repeat begins. Too short to the end is invalid.
    """
    has_count = any(option.name == "count" for option in benchmark.options)
    while True:
        record = measure(benchmark, cell, setup)
        if record["status"] != COMPLETE or is_timed(benchmark, record["figures"]):
            return cell, record
        if not _may_be_longer(cell, has_count):
            more = "larger --count" if has_count else "longer --sample"
            return cell, {**record, "status": INVALID, "reasons": [TOO_SHORT + more], "figures": {}}
        cell = replace(cell, times_longer=cell.times_longer * LONGER)


def _may_be_longer(cell: Cell, has_count: bool) -> bool:
    """Whether the number of messages is not the user's, and not the largest; or whether a longer sample is allowed."""
    if has_count:
        return not cell.settings.get("count") and cell.times_longer < MOST_TIMES_LONGER
    return "sample_s" in cell.settings and LONGER * cell.sample_s <= LONGEST_SAMPLE_S


def _report_progress(benchmark: Benchmark, cell: Cell, repeat: int, record: Record, left_s: float) -> None:
    outcome = _figures_in_words(benchmark, record["figures"]) or "; ".join(reasons_in_words(record["reasons"]))
    left = f"; about {duration_in_words(left_s)} left" if left_s >= _SAY_LEFT_FROM_S else ""
    say(f"{benchmark.name} {repeat}: {cell}: {outcome}{left}")


def _figures_in_words(benchmark: Benchmark, figures: Figures) -> str:
    """The main figures; the table has all."""
    columns = [column for column in benchmark.columns if column.with_interval and column.name in figures]
    return ", ".join(f"{number(figures[column.name])} {column.title}" for column in columns)


def jobs_of_suite(settings: Settings) -> Iterator[Job]:
    """Benchmarks with the settings of a suite. Without `transport` each is over its own default.

    UserError if a transport is unknown.
    """
    for name in names():
        benchmark = benchmark_of(name)
        defaults, _ = settings_in_words(benchmark, ["--quick"] * bool(settings["quick"]))
        shared = {name: settings[name] for name in SHARED if settings.get(name) and name not in benchmark.lacks}
        own = {**defaults, **shared}
        if settings.get("transport"):
            own["transport"] = _able(benchmark, own, settings["transport"])
        if own["transport"]:
            yield benchmark, own


def _able(benchmark: Benchmark, settings: Settings, transports: Iterable[str]) -> tuple[str, ...]:
    """Choose the transports that support every pattern of their cells."""

    def is_able(transport: str) -> bool:
        over = {**settings, "transport": (transport,)}
        cells = [Cell(transport, point, over) for point in benchmark.points(over)]
        measured = [cell for cell in cells if not benchmark.unsupported(cell)]
        needed = {pattern for cell in measured for pattern in benchmark.patterns(cell)}
        return bool(measured) and needed <= transport_of(scheme_of(transport)).patterns

    with users_mistake(TransportError):
        return tuple(transport for transport in transports if is_able(transport))


def _record_of_suite(
    jobs: Iterable[Job], settings: Settings, name: str, brokers: Brokers, on_growth: OnGrowth
) -> Record:
    """Measure one benchmark after the other until one is interrupted; one that fails does not keep others from theirs.

    The record has a part for each benchmark that measured something, and the reason for each that did not. The last
    error is raised if nothing was measured.
    """
    head, began_s = _head_of(name, SUITE, "every benchmark with its defaults", "all"), time.monotonic()
    whole: list[Record] = []
    lost: list[str] = []
    failed: BaseException | None = None

    def record(*growing: Record) -> Record:
        parts = [*whole, *growing]
        status = next((part["status"] for part in parts if part["status"] != COMPLETE), COMPLETE)
        reasons = [f"{part['benchmark']}: {reason}" for part in parts for reason in part["reasons"]]
        return {
            **head,
            "status": PARTIAL if lost else status,
            "reasons": [*lost, *reasons],
            "settings": _given(settings),
            "duration_s": time.monotonic() - began_s,
            "rows": [],
            "parts": parts,
        }

    for benchmark, own in jobs:
        try:
            whole.append(record_of(benchmark, own, name, brokers, lambda part: on_growth(lambda: record(part()))))
        except (KeyboardInterrupt, *FAULTS) as error:
            failed = error
            lost.append(f"{benchmark.name}: {_why(error)}")
            if isinstance(error, KeyboardInterrupt):
                break
        if whole and INTERRUPTED in whole[-1]["reasons"]:
            break
    if failed and not whole:
        raise failed
    return record()
