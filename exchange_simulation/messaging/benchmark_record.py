"""The record of one benchmark, bench.json's content: what was given, what was measured, on which machine."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

import click

from exchange.allowed import BadSetting
from exchange.json_records import SCHEMA, Record
from exchange.words import counted
from exchange_simulation.launching.errors import sentence
from exchange_simulation.launching.launch.brokers import Brokers
from exchange_simulation.launching.notices import say
from exchange_simulation.launching.record.machine import host_facts, now, versions
from exchange_simulation.messaging.benchmark import BenchmarkDefinition
from exchange_simulation.messaging.cell_turns import TIMES_LONGER, measure_in_turns
from exchange_simulation.messaging.earlier import earlier_tries
from exchange_simulation.messaging.expected_time import expected_s_of_plan
from exchange_simulation.messaging.measurements import Measurements
from exchange_simulation.messaging.point import Settings
from exchange_simulation.messaging.setup import BenchmarkPlan, check_cells, check_hosts, plan_of
from exchange_simulation.messaging.setups import Setups
from exchange_simulation.repeats.noise_rule import RedoRule
from exchange_simulation.reports.formats.times import duration_in_words
from transports.base import TransportError

INTERRUPTED = "interrupted"
ERRORS_OF_A_BENCHMARK = (click.ClickException, TransportError, OSError, BadSetting)
"""Errors that end a benchmark with a sentence."""

RecordSoFar = Callable[[], Record]
"""Makes the record of everything that was measured so far."""
OnMeasured = Callable[[RecordSoFar], None]
"""Called after each measurement."""


def head_of(name: str, benchmark: str, about: str, paper: str) -> Record:
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


def settings_given(settings: Settings) -> Record:
    """The settings that the user or a default gave."""
    return {option: value for option, value in settings.items() if value is not None}


def why_it_ended(error: BaseException) -> str:
    """The sentence of an error that ended a benchmark; a KeyboardInterrupt is an interruption."""
    return sentence(error) if isinstance(error, Exception) else INTERRUPTED


def measure_benchmark(
    benchmark: BenchmarkDefinition,
    settings: Settings,
    name: str,
    brokers: Brokers,
    on_measured: OnMeasured,
    earlier: Record | None = None,
) -> Record:
    """Measure a benchmark, and return bench.json's content.

    `earlier` is the record of an interruption of the same benchmark, which goes on with the measurements that it
    lacks. An error after the first measurement ends the benchmark and stands in the record; an earlier error is raised.
    """
    head = head_of(name, benchmark.name, benchmark.about, benchmark.paper)
    began_s = time.monotonic()
    plan = plan_of(benchmark, settings)
    repeats = settings["repeats"]
    rule = RedoRule.of_plan(repeats * len(plan.cells)) if settings["redo_noisy"] else None
    measurements = Measurements(list(plan.cells), rule)
    check_hosts(benchmark, plan.cells, settings)
    earlier_s = 0.0
    if earlier is not None:
        _take_over(measurements, earlier)
        head["started_at"] = earlier["started_at"]
        earlier_s = float(earlier["duration_s"])
    setups = Setups(benchmark, plan, settings, brokers)
    _announce(benchmark, plan, check_cells(benchmark, plan.cells), repeats, rule)

    def record() -> Record:
        hosts = setups.hosts
        return {
            **head,
            **measurements.record(),
            "left_out": plan.left_out,
            "settings": settings_given(settings),
            "networks": setups.facts,
            "brokers": setups.broker_versions,
            **({"hosts": hosts} if hosts else {}),
            "disk": setups.disk,
            "duration_s": earlier_s + time.monotonic() - began_s,
        }

    try:
        with setups:
            stopped = measure_in_turns(benchmark, repeats, setups, measurements, lambda: on_measured(record))
            measurements.stopped = stopped
    except (KeyboardInterrupt, *ERRORS_OF_A_BENCHMARK) as error:
        measurements.stopped = why_it_ended(error)
        if not any(measurements.tries):
            raise
    return record()


def _take_over(measurements: Measurements, earlier: Record) -> None:
    """Put the tries of an interrupted benchmark into `measurements`, and make its cells as long as they were."""
    measurements.tries = earlier_tries(earlier, measurements.cells)
    measurements.resumed = int(earlier.get("resumed", 0)) + 1
    for place, tries in enumerate(measurements.tries):
        times_longer = max((int(attempt.get(TIMES_LONGER, 1)) for attempt in tries), default=1)
        measurements.cells[place] = replace(measurements.cells[place], times_longer=times_longer)
    count = sum(map(len, measurements.tries))
    say(f"{earlier['benchmark']}: goes on, after {counted(count, 'measurements')}")


def _announce(
    benchmark: BenchmarkDefinition, plan: BenchmarkPlan, role_counts: Sequence[int], repeats: int, rule: RedoRule | None
) -> None:
    """Say how much is measured, about how long that takes, and which cells are left out.

    For example: de-spsc: 4 cells of up to 2 roles, measured 6 times: about 22 s; noisy ones again (--keep-noisy: never)
    """
    extent = f"{counted(len(plan.cells), 'cells')} of up to {counted(max(role_counts), 'roles')}"
    duration = duration_in_words(expected_s_of_plan(benchmark, plan, role_counts, repeats))
    again = "; noisy ones again (--keep-noisy: never)" if rule else ""
    say(f"{benchmark.name}: {extent}, measured {counted(repeats, 'times')}: about {duration}{again}")
    for reason in plan.left_out:
        say(f"{benchmark.name}: left out, {reason}")
