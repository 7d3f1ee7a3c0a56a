"""`exchange bench NAME`: every cell, as often as was asked for, in turns; then the record, the table and the page."""

from __future__ import annotations

import secrets
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import click
import orjson

from exchange.allowed import BadSetting
from experiments.bench.benchmark import Asked, Benchmark, Cell
from experiments.bench.catalogue import benchmark_of
from experiments.bench.measuring import COMPLETE, INVALID, PARTIAL, Record, measure
from experiments.bench.results import row_of
from experiments.bench.stage import Stage
from experiments.bench.words import cell_in_words, figures_in_words, reasons_in_words
from experiments.brokers_held import Brokers
from experiments.component import sentence
from experiments.errors import UserError
from experiments.host import host_facts, now, versions
from experiments.interrupts import ended_as_by_ctrl_c
from experiments.run_folder import new_run_folder, write_json
from transports.base import TransportError

SCHEMA = 1
FILE = "bench.json"
INTERRUPTED = "interrupted"


@dataclass
class Made:
    """What was measured, cell by cell in the order of the plan; why it ended early, where it did."""

    cells: Sequence[Cell]
    repeats: list[list[Record]] = field(init=False)
    stopped: str | None = None

    def __post_init__(self) -> None:
        self.repeats = [[] for _ in self.cells]

    @property
    def is_empty(self) -> bool:
        return not any(self.repeats)


MakeRecord = Callable[[str, Brokers], Record]
"""Measures; bench.json's content, of a folder of that name."""


def bench(benchmark: Benchmark, asked: Asked, results: str, name: str | None, as_json: bool) -> int:
    """The exit code: 0 where every answer was right."""
    made = partial(record_of, benchmark, asked)
    return kept(made, Path(results), name or unnamed(benchmark.name), as_json)


def kept(make: MakeRecord, results: Path, name: str, as_json: bool) -> int:
    """Make a record, and a folder with it and its page, and show it; the exit code.

    Of a mistake that shows before anything was measured nothing stays.
    """
    with ended_as_by_ctrl_c():
        folder = new_run_folder(results, name)
        try:
            with Brokers() as brokers:
                record = make(name, brokers)
        except (UserError, TransportError, OSError, BadSetting, click.ClickException) as error:
            shutil.rmtree(folder, ignore_errors=True)
            if isinstance(error, click.ClickException):
                raise
            kind = click.ClickException if isinstance(error, OSError) else UserError
            raise kind(sentence(error)) from error
        _keep(folder, record)
    if as_json:
        click.echo(orjson.dumps(record, option=orjson.OPT_INDENT_2))
    else:
        _show(record, folder)
    return 0 if record["status"] == COMPLETE else 1


def bench_as_written(record: Record, results: str, name: str | None, as_json: bool) -> int:
    """Once more what a record was made of; the exit code."""
    asked = {option: tuple(value) if isinstance(value, list) else value for option, value in record["settings"].items()}
    if "parts" in record:
        from experiments.bench.suite import suite

        return suite(asked, results, name, as_json)
    return bench(benchmark_of(record["benchmark"]), asked, results, name, as_json)


def unnamed(what: str) -> str:
    """A folder's name where the user gave none."""
    return f"{time.strftime('%Y%m%d-%H%M%S')}-{what}-{secrets.token_hex(3)}"


def _keep(folder: Path, record: Record) -> None:
    """The page first: the record is the mark of what is finished."""
    from experiments.bench.page import write_page

    write_page(folder, record)
    write_json(folder / FILE, record)


def _show(record: Record, folder: Path) -> None:
    from experiments.bench.table import show

    show(record)
    click.echo(f"page: {folder / 'bench.html'}")


def record_of(benchmark: Benchmark, asked: Asked, name: str, brokers: Brokers) -> Record:
    """bench.json's content. ClickException where nothing was measured."""
    known, began_s = known_of(name, benchmark.name, benchmark.about, benchmark.paper), time.monotonic()
    made = _measured(benchmark, asked, brokers)
    if made.is_empty:
        raise click.ClickException(made.stopped or "nothing was asked for")
    rows = [row_of(cell, repeats) for cell, repeats in zip(made.cells, made.repeats, strict=True) if repeats]
    reasons = [made.stopped] * bool(made.stopped) + _reasons(rows)
    status = PARTIAL if made.stopped else INVALID if reasons else COMPLETE
    settings = {option: value for option, value in asked.items() if value is not None}
    return {**known, "status": status, "reasons": reasons, "settings": settings,
            "duration_s": time.monotonic() - began_s, "rows": rows}  # fmt: skip


def known_of(name: str, benchmark: str, about: str, paper: str) -> Record:
    """What a record begins with."""
    return {"schema": SCHEMA, "name": name, "benchmark": benchmark, "about": about, "paper": paper,
            "started_at": now(), "host": host_facts(), "versions": versions()}  # fmt: skip


def _reasons(rows: Sequence[Record]) -> list[str]:
    return [
        f"{row['words']}, repeat {repeat['repeat']}: {reason}"
        for row in rows
        for repeat in row["repeats"]
        if repeat["status"] == INVALID
        for reason in repeat["reasons"]
    ]


def _measured(benchmark: Benchmark, asked: Asked, brokers: Brokers) -> Made:
    transports = asked["transport"]
    made = Made([Cell(transport, point, asked) for point in benchmark.points(asked) for transport in transports])
    try:
        with Stage(transports, asked.get("amqp_client"), asked.get("delivery"), brokers) as stage:
            for repeat, place in _turns(asked["repeats"], len(made.cells)):
                record = measure(benchmark, made.cells[place], stage, asked["timeout_s"])
                made.repeats[place].append({"repeat": repeat, **record})
                _say(benchmark, made.cells[place], repeat, record)
                if record["status"] == PARTIAL:
                    made.stopped = f"{cell_in_words(made.cells[place])}: {record['reasons'][0]}"
                    break
    except KeyboardInterrupt:
        made.stopped = INTERRUPTED
    return made


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
