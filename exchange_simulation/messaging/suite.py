"""`exchange bench suite`: every benchmark with its defaults, one after the other, in one record."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator

from exchange.json_records import Record
from exchange_simulation.launching.errors import users_mistake
from exchange_simulation.launching.launch.brokers import Brokers
from exchange_simulation.messaging.benchmark import BenchmarkDefinition
from exchange_simulation.messaging.benchmark_record import (
    FAULTS,
    INTERRUPTED,
    OnGrowth,
    head_of,
    record_of,
    settings_given,
    why_it_ended,
)
from exchange_simulation.messaging.benchmarks import benchmark_of, names
from exchange_simulation.messaging.cell import Cell
from exchange_simulation.messaging.measuring import COMPLETE, PARTIAL
from exchange_simulation.messaging.options import settings_in_words
from exchange_simulation.messaging.point import Settings
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
)
"""Options of the suite that hold for every benchmark."""

Job = tuple[BenchmarkDefinition, Settings]


def jobs_of_suite(settings: Settings) -> Iterator[Job]:
    """Benchmarks with the settings of a suite. Without `transport` each is over its own default.

    UserError if a transport is unknown.
    """
    for name in names():
        benchmark = benchmark_of(name)
        defaults, _ = settings_in_words(benchmark, ["--quick"] if settings["quick"] else [])
        own = dict(defaults)
        for option in SHARED:
            if option not in benchmark.options_left_out and settings.get(option) is not None:
                own[option] = settings[option]
        if settings.get("transport"):
            own["transport"] = _able(benchmark, own, settings["transport"])
        if own["transport"]:
            yield benchmark, own


def _able(benchmark: BenchmarkDefinition, settings: Settings, transports: Iterable[str]) -> tuple[str, ...]:
    """Choose the transports that support every pattern of their cells."""

    def is_able(transport: str) -> bool:
        over = {**settings, "transport": (transport,)}
        cells = [Cell(transport, point, over) for point in benchmark.points(over)]
        measured = [cell for cell in cells if not benchmark.why_unsupported(cell)]
        needed = {pattern for cell in measured for pattern in benchmark.patterns(cell)}
        return bool(measured) and needed <= transport_of(scheme_of(transport)).patterns

    with users_mistake(TransportError):
        return tuple(transport for transport in transports if is_able(transport))


def record_of_suite(
    jobs: Iterable[Job], settings: Settings, name: str, brokers: Brokers, on_growth: OnGrowth
) -> Record:
    """Measure one benchmark after the other until one is interrupted; one that fails does not keep others from theirs.

    The record has a part for each benchmark that measured something, and the reason for each that did not. The last
    error is raised if nothing was measured.
    """
    head = head_of(name, SUITE, "every benchmark with its defaults", "all")
    began_s = time.monotonic()
    parts: list[Record] = []
    lost: list[str] = []
    failed: BaseException | None = None

    def record(*growing: Record) -> Record:
        return {
            **head,
            **_outcome([*parts, *growing], lost),
            "settings": settings_given(settings),
            "duration_s": time.monotonic() - began_s,
            "rows": [],
            "parts": [*parts, *growing],
        }

    for benchmark, own in jobs:
        try:
            parts.append(record_of(benchmark, own, name, brokers, lambda part: on_growth(lambda: record(part()))))
        except (KeyboardInterrupt, *FAULTS) as error:
            failed = error
            lost.append(f"{benchmark.name}: {why_it_ended(error)}")
            if isinstance(error, KeyboardInterrupt):
                break
        if parts and INTERRUPTED in parts[-1]["reasons"]:
            break
    if failed and not parts:
        raise failed
    return record()


def _outcome(parts: list[Record], lost: list[str]) -> Record:
    """Status, reasons and caveats of a suite: those of its parts, and the benchmarks that were lost."""
    reasons = list(lost)
    caveats: list[str] = []
    status = PARTIAL if lost else COMPLETE
    for part in parts:
        reasons += [f"{part['benchmark']}: {reason}" for reason in part["reasons"]]
        caveats += [f"{part['benchmark']}: {caveat}" for caveat in part["caveats"]]
        if status == COMPLETE:
            status = part["status"]
    return {"status": status, "reasons": reasons, "caveats": caveats}
