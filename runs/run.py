"""One run, from settings to its record."""

from __future__ import annotations

import shutil
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from exchange.settings import RunSettings
from runs.component.component import sentence
from runs.errors import UserError
from runs.folder import is_measured
from runs.launch.moment import OnSecond
from runs.lineup import Lineup
from runs.network.profile import parse
from runs.packets import FILE as CAPTURE
from runs.record.host import host_facts, now, versions
from runs.record.outcome import Outcome
from runs.record.record import Conditions, make_record, write_record
from transports.base import BadAddress, TransportError
from transports.registry import scheme_of, transport_of

if TYPE_CHECKING:
    from runs.broker.brokers_held import Brokers


def runs_in_one_process(settings: RunSettings) -> bool:
    """UserError where what is to carry the messages is not known, or has not what was asked of it."""
    scheme = scheme_of(settings.transport)
    try:
        transport = transport_of(scheme)
    except BadAddress as error:
        raise UserError(str(error)) from error
    if settings.nagle and scheme not in transport.over_tcp:
        raise UserError(f"--nagle is {','.join(settings.nagle)}; {scheme} has no TCP sockets: use tcp, zeromq or amqp")
    if settings.topology == "simplex" and scheme not in transport.simplex:
        told = f"--topology is simplex; {scheme} has no connection for each direction"
        raise UserError(f"{told}: use tcp, zeromq or amqp")
    if settings.capture and scheme not in transport.over_tcp:
        raise UserError(f"--capture is for TCP; {scheme} has no packets: use tcp, zeromq or amqp")
    if not parse(settings.network).is_local:
        _check_network(settings, scheme in transport.over_tcp)
    return scheme in transport.one_process


def _check_network(settings: RunSettings, over_tcp: bool) -> None:
    """Components that are elsewhere need TCP, and places that are found for them there."""
    if not over_tcp or "://" in settings.transport or scheme_of(settings.transport) == "amqps":
        told = f"--network is {settings.network}; {settings.transport} cannot be there"
        raise UserError(f"{told}: use tcp, zeromq or amqp, by name alone")


def measure(
    folder: Path, settings: RunSettings, showing: AbstractContextManager[OnSecond], brokers: Brokers | None = None
) -> dict[str, Any]:
    """Run the components, write run.json, return its content. UserError where the run cannot start.

    `showing` is told once a second how far the run is. A private broker is one of `brokers`, or the run's own.
    """
    started_at, host = now(), host_facts()
    try:
        with showing as on_second:
            url, outcome = _started(folder, settings, brokers, on_second)
    except KeyboardInterrupt:  # with no component to ask, or one time too many to wait for their answer
        when = "" if is_measured(folder) else " before the start"
        url, outcome = None, Outcome(lineup=Lineup.of(settings), failures=(f"interrupted{when}",))
    except (UserError, TransportError, OSError) as error:
        if not is_measured(folder):
            shutil.rmtree(folder, ignore_errors=True)
        kind = click.ClickException if isinstance(error, OSError) else UserError
        raise kind(sentence(error)) from error
    known = Conditions(
        name=folder.name, url=url, settings=settings.as_dict(), host=host, versions=versions(), started_at=started_at
    )
    record = make_record(folder, known, outcome)
    if outcome.capture:
        from runs.packets.pcap import compare_with_counters

        record["capture"] = compare_with_counters(record, folder / CAPTURE, outcome.capture)
    return write_record(folder, record)


def _started(
    folder: Path, settings: RunSettings, brokers: Brokers | None, on_second: OnSecond
) -> tuple[str | None, Outcome]:
    """(the engine's URL, what came out)."""
    if runs_in_one_process(settings):
        from runs.launch.threads import run_in_threads

        return run_in_threads(folder, settings, on_second)
    from runs.launch.launcher import launch

    return launch(folder, settings, on_second, brokers)
