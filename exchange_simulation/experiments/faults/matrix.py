"""The fault matrix from its plan to its record, table and page."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from exchange.allowed import meant
from exchange.json_records import SCHEMA
from exchange.settings import RunSettings
from exchange.words import counted, printable
from exchange_simulation.experiments.faults.cell import FaultCell, measured_cell
from exchange_simulation.experiments.faults.hosts import (
    ClockAhead,
    checked_hosts_file,
    clock_of_gateway,
    why_not_over_hosts,
)
from exchange_simulation.experiments.faults.injection import FAULTS
from exchange_simulation.experiments.faults.load import FaultLoad, hosts_in
from exchange_simulation.launching.errors import CannotStart, UserError
from exchange_simulation.launching.files import dated_name, new_run_folder, write_json
from exchange_simulation.launching.folder_lock import locked
from exchange_simulation.launching.hosts.hosts_file import HostsFile
from exchange_simulation.launching.interrupts import interruptible, interruption_noted
from exchange_simulation.launching.launch.brokers import Brokers
from exchange_simulation.launching.notices import say
from exchange_simulation.launching.record.machine import host_facts, now, versions
from exchange_simulation.launching.transport_defaults import with_transport_defaults
from exchange_simulation.launching.transport_urls import split_query, with_option
from exchange_simulation.reports.faults.page import FILE, write_page
from exchange_simulation.reports.faults.table import answer, fails, show
from exchange_simulation.reports.report import print_measured
from transports.base import BadAddress, NotInstalled, mask
from transports.declaration import RunningBroker, Transport
from transports.registry import has_broker, scheme_of, transport_of

START_S = 4.0
"""The time that a run takes beyond its length: to start, to notice the fault, and to end."""


@dataclass(frozen=True, kw_only=True)
class FaultPlan:
    """The cells of a matrix in the order of their runs, and the load of all runs."""

    cells: tuple[FaultCell, ...]
    load: FaultLoad
    further_options: tuple[str, ...] = ()
    """Options for every `exchange run`."""

    hosts: HostsFile | None = None
    """The hosts of all runs; None if they are on this host."""

    @property
    def expected_s(self) -> float:
        """The time that all runs will take."""
        return len(self.cells) * (self.load.seconds + START_S)


def planned(
    transports: Sequence[str], deliveries: Sequence[str], faults: Sequence[str], load: FaultLoad, further: Sequence[str]
) -> FaultPlan:
    """Plan a cell for each fault over each transport; over a broker, for each guarantee too.

    A transport is a scheme, or a scheme with options, as in redis?kind=stream.
    `further` are options for every `exchange run`, which override `load`. UserError for an unknown word, for a list
    that is empty or has a word twice, and if there is no cell.
    """
    for option, words in (("--transports", transports), ("--delivery", deliveries), ("--faults", faults)):
        _check_list(option, words)
    for name in faults:
        if name not in FAULTS:
            raise UserError(f"--faults: {name!r} is no fault; there are {', '.join(FAULTS)}{meant(name, FAULTS)}")
    cells = []
    for transport in transports:
        for delivery in _deliveries_over(transport, deliveries):
            for name in faults:
                if has_broker(transport) or not FAULTS[name].needs_broker:
                    cells.append(FaultCell(transport=transport, delivery=delivery, fault=FAULTS[name]))
    if not cells:
        raise UserError(f"--faults: {', '.join(faults)}: there is no broker over {', '.join(transports)}")
    return FaultPlan(
        cells=tuple(cells), load=load.overridden_by(further), further_options=tuple(further), hosts=_hosts_of(further)
    )


def _hosts_of(further: Sequence[str]) -> HostsFile | None:
    """Return the hosts that options of every run name. UserError for a mistake in their file."""
    path = hosts_in(further)
    return None if path is None else checked_hosts_file(path)


def _check_list(option: str, words: Sequence[str]) -> None:
    """Raise UserError if the list is empty, or has a word twice."""
    if not words:
        raise UserError(f"{option} is empty: give one or more, with commas between them")
    for word in words:
        if words.count(word) > 1:
            raise UserError(f"{option} is {','.join(words)!r}, which has {word} twice: give each once")


def plan_of(record: dict[str, Any]) -> FaultPlan:
    """Return the plan of a matrix that was run, from its record."""
    cells = []
    for entry in record["cells"]:
        fault = FAULTS[entry["fault"]]
        cells.append(FaultCell(transport=entry["transport"], delivery=entry["delivery"], fault=fault))
    settings = dict(record["settings"])
    further = settings.pop("further")
    load = FaultLoad(**settings).overridden_by(further)
    return FaultPlan(cells=tuple(cells), load=load, further_options=tuple(further), hosts=_hosts_of(further))


def _deliveries_over(url: str, deliveries: Sequence[str]) -> Sequence[str | None]:
    """Return the guarantees for a transport's cells; [None] if the transport has no choice of guarantees.

    UserError for an unknown guarantee.
    """
    transport = _declared(url)
    option = transport.run_settings.get("delivery")
    known = transport.words(option) if option else ()
    if not known:
        return [None]
    for delivery in deliveries:
        if delivery not in known:
            choice = f"there are {', '.join(known)}{meant(delivery, known)}"
            raise UserError(f"--delivery: {delivery!r} is no guarantee; {choice}")
    return deliveries


def _declared(url: str) -> Transport:
    """Return the declaration of a transport.

    UserError if it is unknown, joins threads of one process, has a wrong option, or names a place.
    """
    scheme = scheme_of(url)
    try:
        transport = transport_of(scheme)
        if "://" in url:
            raise UserError(f"--transports: {mask(url)} names a place; say {scheme} alone: only our own can be broken")
        settings = RunSettings(transport=url, orders=1)
        with_transport_defaults(settings)
    except (BadAddress, NotInstalled, UserError) as error:
        sentence = str(error)
        raise UserError(sentence if sentence.startswith("--") else f"--transports: {sentence}") from error
    if scheme in transport.one_process:
        raise UserError(f"--transports: {scheme!r} joins threads of one process, and none of them can be broken alone")
    return transport


def _broker(url: str, brokers: Brokers) -> RunningBroker:
    """Return the private broker of all cells over the transport, and start it if needed. NotInstalled, CannotStart.

    Its address has the transport's options, but for those of the server.
    """
    scheme = scheme_of(url)
    transport = transport_of(scheme)
    if transport.broker is None:
        raise NotInstalled(f"{scheme} declares no broker that could be started here")
    query, server_options = split_query(url.partition("?")[2], transport.server_options)
    running = brokers.get(transport.broker().with_options(server_options), nodelay=True)
    return replace(running, url=with_option(running.url, query))


def run_matrix(plan: FaultPlan, results: str, name: str | None, as_json: bool) -> int:
    """Run every cell in a new folder, and show the result. Returns the exit code: 1 if the matrix fails."""
    measured = measured_matrix(plan, results, name)
    record = measured.record
    head, *_ = answer(record)
    print_measured(record, as_json, partial(show, record), measured.page, printable(head))
    return 1 if fails(record) else 0


class MeasuredMatrix(NamedTuple):
    """A fault matrix that was run: its folder, with the record and the page."""

    folder: Path
    record: dict[str, Any]
    page: Path


def measured_matrix(plan: FaultPlan, results: str, name: str | None) -> MeasuredMatrix:
    """Run every cell in a new folder of `results`."""
    with interruption_noted():
        folder = new_run_folder(Path(results), name or dated_name("faults"))
        say(f"{counted(len(plan.cells), 'runs')}, about {max(1, plan.expected_s / 60):.0f} min")
        with locked(folder):
            record = _measured(plan, folder)
        return MeasuredMatrix(folder, record, write_page(folder, record))


def _measured(plan: FaultPlan, folder: Path) -> dict[str, Any]:
    """Run the cells, and write the record after each. Returns the record; after Ctrl-C it lacks the further cells."""
    header = {
        "schema": SCHEMA,
        "name": folder.name,
        "started_at": now(),
        "host": host_facts(),
        "versions": versions(),
        "settings": {**dataclasses.asdict(plan.load), "further": list(plan.further_options)},
        "planned_cells": len(plan.cells),
    }
    planned_faults = {cell.fault.name for cell in plan.cells}
    faults = {name: fault.description for name, fault in FAULTS.items() if name in planned_faults}
    entries: list[dict[str, Any]] = []

    def write(status: str) -> dict[str, Any]:
        record = {**header, "status": status, "faults": faults, "cells": entries}
        write_json(folder / FILE, record)
        return record

    try:
        # A fault may break only a broker of our own, and never one that the user has started.
        with Brokers(takes_standing=False) as brokers, clock_of_gateway(plan.hosts) as clock_ahead:
            for cell in plan.cells:
                with interruptible():
                    entry = _entry(cell, plan, folder, brokers, clock_ahead)
                entries.append(entry)
                place = f"{len(entries):>3} of {len(plan.cells)}"
                say(f"{place}  {cell.fault.name} over {cell.over}: {_in_short(entry)}")
                write("interrupted")  # the status that the record shall have if this process is killed now
    except KeyboardInterrupt:  # also while the clock of a gateway on another host is asked
        return write("interrupted")
    return write("complete")


def _entry(
    cell: FaultCell,
    plan: FaultPlan,
    folder: Path,
    brokers: Brokers,
    clock_ahead: ClockAhead,
) -> dict[str, Any]:
    """Run a cell, unless its fault is impossible over its transport. Returns the cell's entry in the record."""
    scheme = scheme_of(cell.transport)
    if cell.fault.needs_tcp and scheme not in transport_of(scheme).over_tcp:
        return {**cell.facts, "skipped": f"{scheme} has no TCP connection to break"}
    if plan.hosts is not None:
        reason = why_not_over_hosts(cell.fault, plan.hosts, has_broker(cell.transport))
        if reason:
            return {**cell.facts, "skipped": reason}
    broker = None
    has_broker_in_network = bool(cell.fault.network)  # `exchange run` then starts its own broker in the network
    if has_broker(cell.transport) and not has_broker_in_network and plan.hosts is None:
        try:
            broker = _broker(cell.transport, brokers)
        except (NotInstalled, CannotStart) as error:
            return {**cell.facts, "skipped": str(error)}
    return measured_cell(cell, plan.load, folder, broker, list(plan.further_options), clock_ahead)


def _in_short(entry: dict[str, Any]) -> str:
    """Return the outcome of a cell in a line."""
    if entry.get("skipped"):
        return f"skipped: {entry['skipped']}"
    orders = entry["orders"]
    unreported = f", {orders['unreported']:,} MISSING FROM THE RECORD" if orders["unreported"] else ""
    slow_clients = entry.get("slow_clients")
    hung_up = f"; the broker hung up on {counted(slow_clients, 'slow clients')}" if slow_clients else ""
    return f"{orders['lost']:,} of {orders['sent']:,} orders lost{unreported}; {entry['said']}{hung_up}"
