"""`exchange simulate`: matches a simulation, writes its tables and then simulation.json, and shows the result."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator, Mapping, Sequence
from math import ceil
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import click

from exchange.allowed import BadSetting, whole
from exchange.json_records import SCHEMA
from exchange.words import counted, printable
from exchange_simulation.experiments.events.tables import TABLES
from exchange_simulation.experiments.simulate.events import WantedEvents
from exchange_simulation.experiments.simulate.partitions import (
    ROWS_FILE,
    Matched,
    MatchPartition,
    OnPartitions,
    match_in_this_process,
)
from exchange_simulation.experiments.simulate.simulation import Simulation
from exchange_simulation.launching.errors import UserError, writing
from exchange_simulation.launching.files import dated_name, local_path, new_run_folder, write_json
from exchange_simulation.launching.interrupts import ended_as_by_ctrl_c, note_raised, signals_deferred
from exchange_simulation.launching.notices import say
from exchange_simulation.launching.record.machine import host_facts, now, versions
from exchange_simulation.launching.setting_warnings import warn_of_prices
from exchange_simulation.reports.exports import print_json
from exchange_simulation.reports.progress import counting
from exchange_simulation.reports.tables import FoldingTable, indented, key_column, plain_table, terminal

FILE = "simulation.json"
WITHOUT_SPARK = "none"
"""The master of a simulation that is matched in one process."""
MARKET = "market"
"""The default folder of the tables of events, in the simulation's folder."""
ORDERS_PER_S = 1_000.0
TITLES = {"orders": "orders", "trades": "trades", "volume_traded": "lots traded"}
ORDERS_A_PARTITION = 5_000_000
"""Orders of a partition by default. They take about a second on a quiet core, much longer than a partition's start."""
LEAST_PARTITIONS = 8
"""The least number of partitions by default. With several for each core, a slow or busy core can take fewer."""


def simulate(
    simulation: Simulation,
    master: str,
    partitions: int | None,
    results: str,
    name: str | None,
    *,
    events: Sequence[str] = (),
    orders_per_s: float = ORDERS_PER_S,
    tables: str | None = None,
    settings: Mapping[str, str] = MappingProxyType({}),
    as_json: bool,
) -> int:
    """Match a simulation and show it. Returns the exit code, 0."""
    measured = match_simulation(
        simulation,
        master,
        partitions,
        results,
        name,
        events=events,
        orders_per_s=orders_per_s,
        tables=tables,
        settings=settings,
    )
    for note in measured.notes:
        click.echo(note, err=True)
    _show(measured.record, measured.folder, as_json)
    return 0


class MeasuredSimulation(NamedTuple):
    """A simulation that was matched: its folder with the record, and sentences about how it was done."""

    folder: Path
    record: dict[str, Any]
    notes: Sequence[str]


def match_simulation(
    simulation: Simulation,
    master: str,
    partitions: int | None,
    results: str,
    name: str | None,
    *,
    events: Sequence[str] = (),
    orders_per_s: float = ORDERS_PER_S,
    tables: str | None = None,
    settings: Mapping[str, str] = MappingProxyType({}),
) -> MeasuredSimulation:
    """Match a simulation in a new folder of `results`, and write its `events` into `tables`. `settings` are Spark's.

    If the simulation fails or is interrupted, its folder is removed.
    """
    partitions = number_of_partitions(simulation, partitions)
    warn_of_prices(simulation.prices, simulation.max_price)
    with ended_as_by_ctrl_c(), contextlib.ExitStack() as removed_on_failure:
        with signals_deferred():
            folder = new_run_folder(Path(results), name or dated_name("simulate"))
            removed_on_failure.enter_context(_removed_on_failure(folder))
        header = _record_header(folder, simulation, master, partitions)
        tables_url = None
        wanted_events = None
        if events:
            tables_url = _tables_url(tables or str(folder / MARKET), master)
            wanted_events = WantedEvents(tables=tuple(events), run=folder.name, orders_per_s=orders_per_s)
        if master != WITHOUT_SPARK:
            say(f"starting Spark takes 5 s or more; the bar moves when the first of {partitions:,} partitions is done")
        with _partitions_bar(partitions, simulation.orders) as on_partitions:
            matched = _match(
                master, MatchPartition(simulation, wanted_events), partitions, on_partitions, tables_url, settings
            )
        record = {**header, **_results(matched, simulation)}
        if wanted_events:
            record["events"] = {
                "tables": tables_url,
                "orders_per_s": orders_per_s,
                **{table: size._asdict() for table, size in matched.written.items()},
            }
        matched.write(folder)
        write_json(folder / FILE, record)
    return MeasuredSimulation(folder, record, matched.notes)


def _record_header(folder: Path, simulation: Simulation, master: str, partitions: int) -> dict[str, Any]:
    """Return the fields of the record that are known before the start.

    The record is written at the end, and a failure removes the folder, so a folder with a record is always complete.
    """
    return {
        "schema": SCHEMA,
        "name": folder.name,
        "status": "complete",
        "started_at": now(),
        "settings": simulation.as_dict(),
        "master": master,
        "partitions": partitions,
        "host": host_facts(),
        "versions": versions(),
    }


def _tables_url(tables: str, master: str) -> str:
    """Return the URL of the tables, or their absolute path, since executors have other working directories."""
    local = local_path(tables)
    if local is None:
        if master == WITHOUT_SPARK:
            raise UserError(f"--master none writes to this machine only: give a folder, or a Spark master for {tables}")
        return tables
    local = local.resolve()
    with writing(local):
        local.mkdir(parents=True, exist_ok=True)
    return str(local)


@contextlib.contextmanager
def _partitions_bar(partitions: int, orders: int) -> Iterator[OnPartitions]:
    """Show a progress bar of orders on stderr. All partitions have about the same number of orders."""
    with counting("simulate", orders, f" of {orders:,} orders", "matched") as on_orders:

        def on_partitions(done: int) -> None:
            if done:
                on_orders(done * orders // partitions)

        yield on_partitions


def number_of_partitions(simulation: Simulation, partitions: int | None) -> int:
    """Return the number of partitions, at most one for each instrument. UserError if `partitions` is out of range."""
    if partitions is None:
        usual = max(LEAST_PARTITIONS, simulation.orders // ORDERS_A_PARTITION)
        return min(usual, simulation.instruments)
    try:
        whole("partitions", partitions, 1, simulation.instruments)
    except BadSetting as error:
        raise UserError(f"--{error}: a partition has one instrument or more") from error
    return partitions


def _match(
    master: str,
    work: MatchPartition,
    partitions: int,
    on_partitions: OnPartitions,
    tables: str | None,
    settings: Mapping[str, str],
) -> Matched:
    """Match in this process if the master is `none`, else on Spark. ClickException if a book needs too much memory."""
    try:
        if master == WITHOUT_SPARK:
            return match_in_this_process(work, partitions, on_partitions, Path(tables) if tables else None)
        from exchange_simulation.experiments.simulate.on_spark import match_on_spark

        return match_on_spark(master, work, partitions, on_partitions, tables, settings)
    except MemoryError as error:
        most_orders = ceil(work.simulation.orders / work.simulation.instruments)
        raise click.ClickException(
            f"no memory for a book of {most_orders:,} orders; "
            "almost all of its orders stay in the book: give fewer orders, or more instruments"
        ) from error


def _results(matched: Matched, simulation: Simulation) -> dict[str, Any]:
    """Return the record's fields about the results. ClickException if orders, instruments or rows are missing."""
    totals = matched.totals
    if totals["orders"] != simulation.orders:
        raise click.ClickException(f"{totals['orders']:,} of {simulation.orders:,} orders came back matched")
    if matched.rows.num_rows != simulation.instruments:
        raise click.ClickException(
            f"{matched.rows.num_rows:,} of {simulation.instruments:,} instruments came back matched"
        )
    for table, size in matched.written.items():
        # `trades` has no such check: its total counts messages, of which there are two or more for a row.
        if table in totals and table != "trades" and size.rows != totals[table]:
            raise click.ClickException(f"{size.rows:,} of {totals[table]:,} {table} were written")
    return {
        "totals": totals,
        "per_instrument": matched.spread,
        "checksums": matched.checksums,
        "rates": {
            "start_up_s": matched.start_up_s,
            "matching_s": matched.matching_s,
            "orders_per_s": simulation.orders / matched.matching_s,
        },
    }


@contextlib.contextmanager
def _removed_on_failure(folder: Path) -> Iterator[None]:
    """Remove the folder if the body fails. ClickException if it was interrupted."""
    try:
        yield
    except BaseException as error:
        shutil.rmtree(folder, ignore_errors=True)
        if isinstance(error, KeyboardInterrupt):
            note_raised(error)
            raise click.ClickException("interrupted: a simulation is kept as a whole, or not at all") from error
        raise


def _show(record: dict[str, Any], folder: Path, as_json: bool) -> None:
    """Print the record as JSON, or its content with the paths of the tables."""
    if as_json:
        print_json(record)
        return
    show(record)
    click.echo(printable(f"instruments: {folder / ROWS_FILE}"))
    events = record.get("events")
    if events:
        written = ", ".join(f"{events[table]['rows']:,} {table}" for table in TABLES if table in events)
        click.echo(f"events: {written}: {events['tables']}")


def show(record: dict[str, Any]) -> None:
    """Print a simulation.json: speed, totals with their spread over instruments, checksums."""
    console = terminal()
    settings = record["settings"]
    rates = record["rates"]
    checksums = record["checksums"]
    orders = f"{settings['orders']:,} orders of {counted(settings['instruments'], 'instruments')}"
    console.print(f"{rates['orders_per_s']:,.0f} orders/s: {orders} in {rates['matching_s']:,.1f} s", markup=False)
    place = _matched_by(record)
    console.print(indented(f"{place}, seed {settings['seed']}; start-up took another {rates['start_up_s']:,.1f} s"))
    console.print(_totals(record))
    console.print(f"{checksums['hash']}: orders {checksums['orders']}, answers {checksums['answers']}")


def _matched_by(record: dict[str, Any]) -> str:
    """Return where a simulation was matched. For example: one process, 8 partitions; Spark on local[2], 8 partitions"""
    matched_by = "one process" if record["master"] == WITHOUT_SPARK else f"Spark on {record['master']}"
    return f"{matched_by}, {counted(record['partitions'], 'partitions')}"


def _totals(record: dict[str, Any]) -> FoldingTable:
    """Return the table of totals, with their spread over instruments."""
    table = plain_table(
        key_column(), "total", "an instrument: least", "median", "most", title_of_later_blocks="an instrument"
    )
    for name, title in TITLES.items():
        figures = [record["totals"][name], *record["per_instrument"][name].values()]
        table.add_row(title, *(f"{figure:,.0f}" for figure in figures))
    return table
