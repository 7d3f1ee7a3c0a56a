"""`exchange bench suite`: every benchmark with its defaults, one after the other; one record, one page."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import click

from messaging.asking import asked_of
from messaging.benchmark import Asked, Benchmark
from messaging.catalogue import benchmark_of, names
from messaging.measuring import COMPLETE, PARTIAL, Record
from messaging.options import parameters
from messaging.running import FAULTS, INTERRUPTED, SoFar, kept, known_of, record_of, said, unnamed
from runs.broker.brokers_held import Brokers
from runs.errors import UserError, sentence

NAME = "suite"
SHARED = ("quick", "repeats", "timeout_s", "amqp_client", "delivery")
"""What is asked for of all."""


def suite(asked: Asked, results: str, name: str | None, as_json: bool) -> int:
    """The exit code: 0 where every answer was right. Over the transports that were asked for, of those it has."""
    plan = list(_plan(asked))
    if not plan:
        raise UserError(f"no benchmark is over {', '.join(asked['transport'])}: say amqp, zeromq or tcp")

    def made(name: str, brokers: Brokers, so_far: SoFar) -> Record:
        found = _Suite(name, asked, so_far)
        found.measure(plan, brokers)
        return found.record()

    return kept(made, Path(results), name or unnamed(NAME), as_json)


def _plan(asked: Asked) -> Iterator[tuple[Benchmark, Asked]]:
    for name in names():
        benchmark = benchmark_of(name)
        words = ["--quick"] * bool(asked["quick"])
        options = parameters(benchmark.transports, benchmark.options, benchmark.repeats)
        with click.Command(name, params=options).make_context(name, words) as context:
            own = {
                **asked_of(benchmark, context.params),
                **{option: asked[option] for option in SHARED if asked.get(option)},
            }
        transports = [each for each in own["transport"] if each in (asked.get("transport") or own["transport"])]
        if transports:
            yield benchmark, {**own, "transport": transports}


class _Suite:
    """A part for each benchmark that measured something; why there is none of others."""

    def __init__(self, name: str, asked: Asked, so_far: SoFar) -> None:
        self._name, self._asked, self._so_far = name, asked, so_far
        self._known, self._began_s = known_of(name, NAME, "every benchmark with its defaults", "all"), time.monotonic()
        self._parts: list[Record] = []
        self._lost: list[str] = []

    def measure(self, plan: list[tuple[Benchmark, Asked]], brokers: Brokers) -> None:
        """Until one is interrupted. One that loses a role, or cannot begin, does not keep the others from theirs."""
        for benchmark, asked in plan:
            try:
                self._parts.append(record_of(benchmark, asked, self._name, brokers, self._with_part))
            except FAULTS as error:
                self._lose(benchmark, error)
            except KeyboardInterrupt as error:
                self._lose(benchmark, error)
                return
            if INTERRUPTED in self._parts[-1]["reasons"]:
                return

    def _lose(self, benchmark: Benchmark, error: Exception | KeyboardInterrupt) -> None:
        """Raise it again where nothing was measured so far."""
        if not self._parts:
            raise error
        self._lost.append(f"{benchmark.name}: {sentence(error) if isinstance(error, Exception) else INTERRUPTED}")

    def _with_part(self, part: Callable[[], Record]) -> None:
        self._so_far(lambda: self.record(part()))

    def record(self, *more: Record) -> Record:
        """Of all parts, with one more that is not yet whole."""
        parts = [*self._parts, *more]
        status = next((part["status"] for part in parts if part["status"] != COMPLETE), COMPLETE)
        reasons = [f"{part['benchmark']}: {reason}" for part in parts for reason in part["reasons"]]
        return {**self._known, "status": PARTIAL if self._lost else status, "reasons": [*self._lost, *reasons],
                "settings": said(self._asked), "duration_s": time.monotonic() - self._began_s,
                "rows": [], "parts": parts}  # fmt: skip
