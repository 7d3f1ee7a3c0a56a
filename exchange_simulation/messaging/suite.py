"""`exchange bench suite`: every benchmark with its defaults, one after the other, in one record."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import parse_qsl

from exchange.json_records import Record
from exchange_simulation.launching.errors import UserError, users_mistake
from exchange_simulation.launching.launch.brokers import Brokers
from exchange_simulation.launching.notices import say
from exchange_simulation.messaging.benchmark import BenchmarkDefinition
from exchange_simulation.messaging.benchmark_record import (
    ERRORS_OF_A_BENCHMARK,
    INTERRUPTED,
    OnMeasured,
    RecordSoFar,
    head_of,
    measure_benchmark,
    settings_given,
    why_it_ended,
)
from exchange_simulation.messaging.benchmarks import benchmark_of, names
from exchange_simulation.messaging.cell import Cell
from exchange_simulation.messaging.measuring import COMPLETE, PARTIAL
from exchange_simulation.messaging.options import settings_from_words
from exchange_simulation.messaging.point import Settings
from exchange_simulation.messaging.setup import check_hosts, plan_of
from exchange_simulation.reports.formats.times import duration_in_words
from exchange_simulation.reports.progress import part_of_whole
from transports.base import TransportError
from transports.registry import scheme_of, transport_of

SUITE = "suite"
SHARED = (
    "quick",
    "repeats",
    "redo_noisy",
    "timeout_s",
    "amqp_client",
    "delivery",
    "network",
    "nagle",
    "cpus",
    "hosts",
    "insecure",
)
"""Options of the suite that hold for every benchmark."""


@dataclass(frozen=True)
class SuiteJob:
    benchmark: BenchmarkDefinition
    settings: Settings


def jobs_of_suite(settings: Settings) -> Iterator[SuiteJob]:
    """Yield each benchmark that can be measured, with its settings.

    A benchmark that supports none of the transports is left out. If `settings` has no transport, each benchmark has its
    default transports. A benchmark that this machine cannot measure, as with too few open files, stays: it is refused
    when its turn comes. UserError if a transport is unknown.
    """
    for name in names():
        benchmark = benchmark_of(name)
        defaults, _ = settings_from_words(benchmark, ["--quick"] if settings["quick"] else [])
        settings_of_benchmark = dict(defaults)
        for option in SHARED:
            if option not in benchmark.options_left_out and settings.get(option) is not None:
                settings_of_benchmark[option] = settings[option]
        if settings.get("transport"):
            settings_of_benchmark["transport"] = _transports_that_can(
                benchmark, settings_of_benchmark, settings["transport"]
            )
        if settings.get("hosts") and not _leaves_this_host(benchmark, settings_of_benchmark):
            say(f"{name}: left out, since its roles cannot leave this host")
        elif settings_of_benchmark["transport"]:
            yield SuiteJob(benchmark, settings_of_benchmark)


def check_that_one_can_be_measured(jobs: Iterable[SuiteJob]) -> None:
    """UserError if no benchmark can be measured with its settings, as with a mistake in an option of all of them."""
    last_error: UserError | None = None
    for job in jobs:
        try:
            check_hosts(job.benchmark, plan_of(job.benchmark, job.settings).cells, job.settings)
        except UserError as error:
            last_error = error
        else:
            return
    if last_error is not None:
        raise last_error


def _leaves_this_host(benchmark: BenchmarkDefinition, settings: Settings) -> bool:
    """Return True if the benchmark supports a cell with its roles on the hosts of --hosts, or refuses its workload."""
    try:
        points = benchmark.points(settings)
    except UserError:
        return True
    cells = [Cell(transport, point, settings) for transport in settings["transport"] for point in points]
    return any(not benchmark.why_unsupported(cell) for cell in cells)


def _transports_that_can(
    benchmark: BenchmarkDefinition, settings: Settings, transports: Iterable[str]
) -> tuple[str, ...]:
    """Choose the transports that support every pattern of their cells, or over which the workload is refused."""

    def can_carry(transport: str) -> bool:
        settings_over = {**settings, "transport": (transport,)}
        try:
            points = benchmark.points(settings_over)
        except UserError:
            return True
        cells = [Cell(transport, point, settings_over) for point in points]
        measured = [cell for cell in cells if not benchmark.why_unsupported(cell)]
        needed = {pattern for cell in measured for pattern in benchmark.patterns(cell)}
        options = dict(parse_qsl(transport.partition("?")[2]))
        declared = transport_of(scheme_of(transport))
        for pattern in sorted(needed, key=lambda pattern: pattern.value):
            reason = declared.why_lacks(pattern, options)
            if reason:
                say(f"{benchmark.name} over {transport}: left out, since it has no pattern {pattern.value!r}; {reason}")
                return False
        return bool(measured)

    with users_mistake(TransportError):
        return tuple(transport for transport in transports if can_carry(transport))


def measure_suite(
    jobs: Sequence[SuiteJob], settings: Settings, name: str, brokers: Brokers, on_measured: OnMeasured
) -> Record:
    """Measure one benchmark after the other, until one is interrupted; returns bench.json's content.

    If a benchmark fails, the next one is still measured. The record has a part for each benchmark that measured
    something, and a reason for each that did not. If nothing was measured, the last error is raised.
    """
    head = head_of(name, SUITE, "every benchmark with its defaults", "all")
    began_s = time.monotonic()
    parts: list[Record] = []
    failures: list[str] = []
    last_error: BaseException | None = None

    def record(*growing: Record) -> Record:
        """The record so far; `growing` is the part of the benchmark that is being measured, if there is one."""
        return {
            **head,
            **_outcome([*parts, *growing], failures),
            "settings": settings_given(settings),
            "duration_s": time.monotonic() - began_s,
            "rows": [],
            "parts": [*parts, *growing],
        }

    def on_part_measured(part_so_far: RecordSoFar) -> None:
        """Hand on a function that makes the suite's record with the growing part in it. It is called now or later."""

        def suite_so_far() -> Record:
            return record(part_so_far())

        on_measured(suite_so_far)

    for number, job in enumerate(jobs, 1):
        say(_place_in_words(number, len(jobs), job.benchmark.name, time.monotonic() - began_s))
        try:
            with part_of_whole(f"{number} of {len(jobs)}:"):
                parts.append(measure_benchmark(job.benchmark, job.settings, name, brokers, on_part_measured))
        except (KeyboardInterrupt, *ERRORS_OF_A_BENCHMARK) as error:
            last_error = error
            failures.append(f"{job.benchmark.name}: {why_it_ended(error)}")
            if isinstance(error, KeyboardInterrupt):
                break
            say(failures[-1])
        if parts and INTERRUPTED in parts[-1]["reasons"]:
            break
    if last_error and not parts:
        raise last_error
    return record()


def _place_in_words(number: int, benchmarks: int, name: str, elapsed_s: float) -> str:
    """Return which benchmark of how many begins, and about how long the suite still takes, from the second one on.

    For example: benchmark 3 of 12, de-pp; about 4 min left
    """
    words = f"benchmark {number} of {benchmarks}, {name}"
    done = number - 1
    if not done:
        return words
    return f"{words}; about {duration_in_words(elapsed_s / done * (benchmarks - done))} left"


def _outcome(parts: list[Record], failures: list[str]) -> Record:
    """Status, reasons and caveats of a suite: those of its parts, and `failures` for benchmarks without a part."""
    reasons = list(failures)
    caveats: list[str] = []
    status = PARTIAL if failures else COMPLETE
    for part in parts:
        reasons += [f"{part['benchmark']}: {reason}" for reason in part["reasons"]]
        caveats += [f"{part['benchmark']}: {caveat}" for caveat in part["caveats"]]
        if status == COMPLETE:
            status = part["status"]
    return {"status": status, "reasons": reasons, "caveats": caveats}
