"""`exchange bench NAME`: every cell, as often as was asked for, in turns; then the record, the table and the page."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import click

from exchange.allowed import BadSetting
from messaging.benchmark import Asked, Benchmark, Cell
from messaging.catalogue import benchmark_of
from messaging.cells import plan_of
from messaging.keeping import Keeping
from messaging.made import Made
from messaging.measuring import PARTIAL, Record, measure
from messaging.room import check_cells
from messaging.stage import Stage
from messaging.words import cell_in_words, figures_in_words, reasons_in_words
from runs.broker.brokers_held import Brokers
from runs.errors import UserError, sentence
from runs.interrupts import ended_as_by_ctrl_c
from runs.record.host import host_facts, now, versions
from transports.base import TransportError

SCHEMA = 1
INTERRUPTED = "interrupted"
FAULTS = (click.ClickException, TransportError, OSError, BadSetting)
"""What ends a benchmark with a sentence."""

SoFar = Callable[[Callable[[], Record]], None]
"""Called after each measurement, with what makes the record of all there is."""
MakeRecord = Callable[[str, Brokers, SoFar], Record]
"""Measures; bench.json's content, of a folder of that name."""


def bench(benchmark: Benchmark, asked: Asked, results: str, name: str | None, as_json: bool) -> int:
    """The exit code: 0 where every answer was right."""
    made = partial(record_of, benchmark, asked)
    return kept(made, Path(results), name or unnamed(benchmark.name), as_json)


def kept(make: MakeRecord, results: Path, name: str, as_json: bool) -> int:
    """Make a record, kept as it grows, and its page, and show it; the exit code."""
    with ended_as_by_ctrl_c():
        keeping = Keeping(results, name)
        try:
            with Brokers() as brokers:
                record = make(name, brokers, keeping.so_far)
        except KeyboardInterrupt:
            raise click.ClickException(INTERRUPTED) from None
        except FAULTS as error:
            if isinstance(error, click.ClickException):
                raise
            kind = click.ClickException if isinstance(error, OSError) else UserError
            raise kind(sentence(error)) from error
        return keeping.whole(record, as_json)


def bench_as_written(record: Record, results: str, name: str | None, as_json: bool) -> int:
    """Once more what a record was made of; the exit code."""
    asked = {option: tuple(value) if isinstance(value, list) else value for option, value in record["settings"].items()}
    if "parts" in record:
        from messaging.suite import suite

        return suite(asked, results, name, as_json)
    return bench(benchmark_of(record["benchmark"]), asked, results, name, as_json)


def unnamed(what: str) -> str:
    """A folder's name where the user gave none."""
    return f"{time.strftime('%Y%m%d-%H%M%S')}-{what}-{secrets.token_hex(3)}"


def record_of(benchmark: Benchmark, asked: Asked, name: str, brokers: Brokers, so_far: SoFar) -> Record:
    """bench.json's content. What ended it is raised where nothing was measured."""
    known, began_s = known_of(name, benchmark.name, benchmark.about, benchmark.paper), time.monotonic()
    plan = plan_of(benchmark, asked)
    made = Made(plan.cells)
    patterns = {transport: plan.patterns(benchmark, transport) for transport in asked["transport"]}
    stage = Stage(patterns, asked.get("amqp_client"), asked.get("delivery"), brokers)
    check_cells(benchmark, plan.cells)

    def record() -> Record:
        told = {"left_out": plan.left_out, "settings": said(asked), "duration_s": time.monotonic() - began_s}
        return {**known, **made.found(), **told}

    _measure_all(benchmark, asked, stage, made, lambda: so_far(record))
    return record()


def said(asked: Asked) -> Record:
    """Without what was left to others."""
    return {option: value for option, value in asked.items() if value is not None}


def known_of(name: str, benchmark: str, about: str, paper: str) -> Record:
    """What a record begins with."""
    return {"schema": SCHEMA, "name": name, "benchmark": benchmark, "about": about, "paper": paper,
            "started_at": now(), "host": host_facts(), "versions": versions()}  # fmt: skip


def _measure_all(benchmark: Benchmark, asked: Asked, stage: Stage, made: Made, on_each: Callable[[], None]) -> None:
    try:
        with stage:
            made.stopped = _in_turns(benchmark, asked, stage, made, on_each)
    except KeyboardInterrupt:
        made.stopped = INTERRUPTED
        if made.is_empty:
            raise
    except FAULTS as error:
        made.stopped = sentence(error)
        if made.is_empty:
            raise


def _in_turns(benchmark: Benchmark, asked: Asked, stage: Stage, made: Made, on_each: Callable[[], None]) -> str | None:
    """Why it ended early, where it did."""
    for repeat, place in _turns(asked["repeats"], len(made.cells)):
        record = measure(benchmark, made.cells[place], stage, asked["timeout_s"])
        made.repeats[place].append({"repeat": repeat, **record})
        on_each()
        _say(benchmark, made.cells[place], repeat, record)
        if record["status"] == PARTIAL:
            return f"{cell_in_words(made.cells[place])}: {record['reasons'][0]}"
    return None


def _turns(repeats: int, cells: int) -> Iterator[tuple[int, int]]:
    """(repeat, place of the cell): every cell once, then every cell again, since a machine's speed drifts."""
    return ((repeat, place) for repeat in range(1, repeats + 1) for place in range(cells))


def _say(benchmark: Benchmark, cell: Cell, repeat: int, record: Record) -> None:
    came = (
        figures_in_words(benchmark, record["figures"])
        or "; ".join(reasons_in_words(record["reasons"]))
        or "too short to be timed"
    )
    click.echo(f"{benchmark.name} {repeat}: {cell_in_words(cell)}: {came}", err=True)
