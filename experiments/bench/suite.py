"""`exchange bench suite`: every benchmark with its defaults, one after the other; one record, one page."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

from experiments.bench.asking import asked_of
from experiments.bench.benchmark import Asked, Benchmark
from experiments.bench.catalogue import benchmark_of, names
from experiments.bench.commands import command_of
from experiments.bench.measuring import COMPLETE, Record
from experiments.bench.running import INTERRUPTED, kept, known_of, record_of, unnamed
from experiments.brokers_held import Brokers
from experiments.errors import UserError

NAME = "suite"
SHARED = ("quick", "repeats", "timeout_s", "amqp_client", "delivery")
"""What is asked for of all."""


def suite(asked: Asked, results: str, name: str | None, as_json: bool) -> int:
    """The exit code: 0 where every answer was right. Over the transports that were asked for, of those it has."""
    plan = list(_plan(asked))
    if not plan:
        raise UserError(f"no benchmark is over {', '.join(asked['transport'])}: say amqp, zeromq or tcp")

    def made(name: str, brokers: Brokers) -> Record:
        known, began_s = known_of(name, NAME, "every benchmark with its defaults", "all"), time.monotonic()
        parts = list(_parts(plan, name, brokers))
        status = next((part["status"] for part in parts if part["status"] != COMPLETE), COMPLETE)
        reasons = [f"{part['benchmark']}: {reason}" for part in parts for reason in part["reasons"]]
        settings = {option: value for option, value in asked.items() if value is not None}
        return {**known, "status": status, "reasons": reasons, "settings": settings,
                "duration_s": time.monotonic() - began_s, "rows": [], "parts": parts}  # fmt: skip

    return kept(made, Path(results), name or unnamed(NAME), as_json)


def _plan(asked: Asked) -> Iterator[tuple[Benchmark, Asked]]:
    for name in names():
        benchmark = benchmark_of(name)
        words = ["--quick"] * bool(asked["quick"])
        with command_of(benchmark).make_context(name, words) as context:
            own = {
                **asked_of(benchmark, context.params),
                **{option: asked[option] for option in SHARED if asked.get(option)},
            }
        transports = [each for each in own["transport"] if each in (asked.get("transport") or own["transport"])]
        if transports:
            yield benchmark, {**own, "transport": transports}


def _parts(plan: list[tuple[Benchmark, Asked]], name: str, brokers: Brokers) -> Iterator[Record]:
    """Until one is interrupted; one that loses a role does not keep the others from theirs."""
    for benchmark, asked in plan:
        part = record_of(benchmark, asked, name, brokers)
        yield part
        if INTERRUPTED in part["reasons"]:
            return
