"""Make a run from settings, and record it. Record a run whose components were started by hand."""

from __future__ import annotations

import contextlib
import shutil
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from exchange.instances import named, role_of
from exchange.results import ReporterResult
from exchange.settings import RunSettings
from exchange.unique import unique
from exchange.words import printable
from exchange_simulation.launching.errors import UserError, sentence
from exchange_simulation.launching.files import is_measured
from exchange_simulation.launching.lineup import Lineup
from exchange_simulation.launching.record.begun import note_begun, note_ended
from exchange_simulation.launching.record.machine import host_facts, now, versions
from exchange_simulation.launching.record.outcome import RunOutcome, outcome_of, read_results
from exchange_simulation.launching.record.reading import Spool, read_spool
from exchange_simulation.launching.record.record import Conditions, exit_code, make_record, write_record
from exchange_simulation.launching.record.streams import stream_counts
from exchange_simulation.launching.transport_checks import runs_in_one_process
from exchange_simulation.launching.transport_defaults import with_transport_defaults
from transports.base import TransportError
from transports.registry import scheme_of

if TYPE_CHECKING:
    from exchange_simulation.launching.launch.brokers import Brokers
    from exchange_simulation.launching.launch.watch import OnSecond


class MeasuredRun(NamedTuple):
    """A run that has ended."""

    record: dict[str, Any]
    """The content of run.json."""
    spool: Spool
    """The records that figures need, as they were read for run.json."""


class NotRecorded(click.ClickException):
    """run.json cannot be written. `measured` is the run, with the record that could not be written."""

    def __init__(self, folder: Path, measured: MeasuredRun, why: str) -> None:
        super().__init__(f"{why}; make room, then: exchange results repair {folder}")
        self.measured = measured


def measure(
    folder: Path, settings: RunSettings, showing: AbstractContextManager[OnSecond], brokers: Brokers | None = None
) -> dict[str, Any]:
    """Make a run and return the content of its run.json. Arguments and errors are those of `measured_run`."""
    return measured_run(folder, settings, showing, brokers).record


def measured_run(
    folder: Path, settings: RunSettings, showing: AbstractContextManager[OnSecond], brokers: Brokers | None = None
) -> MeasuredRun:
    """Run the components and write run.json. The settings have passed `check_transport`.

    `showing` yields the function that is called once a second with the run's progress. `brokers` shares private
    brokers between runs; without `brokers`, the run starts its own broker.

    UserError if the run cannot start, BadSetting if the transport lacks a setting, NotRecorded if the disk is full.
    Signals that arrive between the run's end and the writing of run.json are raised afterwards.
    """
    settings = with_transport_defaults(settings)
    conditions = replace(conditions_here(folder.name), settings=settings.as_dict())
    note_begun(folder, conditions)
    # Once the components have ended, `launch` holds signals back until this context ends: run.json is written whole.
    with contextlib.ExitStack() as held_signals:
        url, outcome = _run_components(folder, settings, showing, brokers, held_signals)
        if outcome.lacks_a_gateway:  # count what its recorded streams hold
            outcome = replace(outcome, streams=stream_counts(folder, outcome.lineup))
        spool = read_spool(folder)
        record = make_record(spool, replace(conditions, url=url), outcome)
        if outcome.capture:
            from exchange_simulation.launching.packets.capture import FILE
            from exchange_simulation.launching.packets.pcap import compare_with_counters

            record["capture"] = compare_with_counters(record, folder / FILE, outcome.capture)
        measured = MeasuredRun(record, spool)
        try:
            write_record(folder, record)
        except click.ClickException as error:
            raise NotRecorded(folder, measured, error.message) from error
        note_ended(folder)
    return measured


def _run_components(
    folder: Path,
    settings: RunSettings,
    showing: AbstractContextManager[OnSecond],
    brokers: Brokers | None,
    held_signals: contextlib.ExitStack,
) -> tuple[str | None, RunOutcome]:
    """Run in threads or processes. Returns the first engine's URL and the outcome. UserError if nothing starts."""
    try:
        with showing as on_second:
            if runs_in_one_process(settings.transport):
                from exchange_simulation.launching.launch.threads import run_in_threads

                return run_in_threads(folder, settings, on_second)
            from exchange_simulation.launching.launch.launcher import launch

            return launch(folder, settings, on_second, brokers, held_signals)
    except KeyboardInterrupt:  # before the components were started, or a further Ctrl-C while they were ending
        when = "" if is_measured(folder) else " before the start"
        return None, RunOutcome(lineup=Lineup.of(settings), failures=(f"interrupted{when}",))
    except click.ClickException as error:
        if is_measured(folder):
            return _failed(settings, error)
        shutil.rmtree(folder, ignore_errors=True)
        raise
    except TransportError as error:  # such as an address that is in use: a mistake of the user (exit code 2)
        if is_measured(folder):
            return _failed(settings, error)
        shutil.rmtree(folder, ignore_errors=True)
        raise UserError(sentence(error)) from error
    except OSError as error:  # the system failed (exit code 1)
        if is_measured(folder):
            return _failed(settings, error)
        shutil.rmtree(folder, ignore_errors=True)
        raise click.ClickException(sentence(error)) from error


def _failed(settings: RunSettings, error: Exception) -> tuple[None, RunOutcome]:
    """Return no URL, and the outcome of a run that measured something before it failed."""
    return None, RunOutcome(lineup=Lineup.of(settings), failures=(sentence(error),))


def conditions_here(name: str) -> Conditions:
    """Return the name, host, versions and time of a run that begins. URL and settings are filled in later."""
    return Conditions(name=name, url=None, settings={}, host=host_facts(), versions=versions(), started_at=now())


def record_by_hand(
    folder: Path, before: Conditions, reporter: ReporterResult, instance: int, settings: RunSettings, cpu: int | None
) -> int:
    """Write run.json of the pairs that report to this reporter; return the exit code.

    `settings` are the reporter's, of which the numbers of pairs and reporters are used. `cpu` is its processor.
    """
    name = named("reporter", instance)
    lineup = Lineup.of(settings).of_reporter(instance)
    results, unreadable = read_results(reporter.results)
    outcome = outcome_of(lineup, {**results, name: reporter})
    outcome.failures = unreadable
    numbers = {
        "pairs": settings.pairs,
        "gateways": settings.gateways,
        "engines": settings.engines,
        "reporters": settings.reporters,
    }
    from_gateways = _conditions_of_gateways(outcome, numbers, {} if cpu is None else {name: cpu})
    conditions = replace(before, **from_gateways)
    record = write_record(folder, make_record(read_spool(folder), conditions, outcome))
    note_ended(folder)
    for reason in record["reasons"]:
        click.echo(printable(f"{name}: {record['status']}: {reason}"), err=True)
    click.echo(printable(f"{name}: {record['status']}, see {folder / 'run.json'}"), err=True)
    return exit_code(record)


def _conditions_of_gateways(
    outcome: RunOutcome, numbers: dict[str, int], cpu_of_reporter: dict[str, int]
) -> dict[str, Any]:
    """Return the URL and the settings of the first gateway, with the values that differ by component filled in.

    `numbers` are the numbers of pairs and reporters. The processors of engines stay unknown, since no result has them.
    Empty if no gateway left a result.
    """
    if not outcome.gateways:
        return {}
    settings = outcome.gateways[min(outcome.gateways)].settings
    url = str(settings["transport"])
    cpus = {}
    for pair, gateway in outcome.gateways.items():
        if gateway.settings["cpus"]:
            cpus[named("gateway", pair)] = gateway.settings["cpus"]["gateway"]
    return {
        "url": url,
        "settings": {
            **settings,
            **numbers,
            "cpus": {**cpus, **cpu_of_reporter},
            "nagle": _roles_with_nagle(outcome),
            "transport": scheme_of(url),
        },
    }


def _roles_with_nagle(outcome: RunOutcome) -> list[str]:
    """Return the roles that have a socket which was opened with nodelay=off."""
    roles = []
    for name, sockets in outcome.sockets.items():
        if any(not socket["tcp_nodelay_asked"] for socket in sockets):
            roles.append(role_of(name))
    return unique(roles)
