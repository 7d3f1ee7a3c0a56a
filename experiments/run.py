"""One run, from settings to record, table and page."""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import orjson

from exchange.settings import RunSettings
from experiments.component import sentence
from experiments.errors import UserError
from experiments.host import host_facts, now, versions
from experiments.interrupts import ended_as_by_ctrl_c
from experiments.lineup import Lineup
from experiments.moment import OnSecond
from experiments.network.profile import parse
from experiments.options import warn_of_rejections
from experiments.outcome import Outcome
from experiments.present import show_record
from experiments.progress import progress_bar
from experiments.record import Conditions, exit_code, write_record
from experiments.run_folder import is_measured, new_run_folder, run_name
from experiments.seconds import show_seconds
from transports.base import BadAddress, TransportError
from transports.registry import scheme_of, transport_of

if TYPE_CHECKING:
    from experiments.brokers_held import Brokers


def run(
    settings: RunSettings,
    results: str,
    name: str | None,
    with_spark: bool,
    with_page: bool,
    as_json: bool,
    live: bool = False,
    live_spark: bool = False,
) -> int:
    """The exit code: 0 for complete and saturated, 1 for invalid and partial."""
    _check(settings)
    showing = _showing(settings, live, live_spark)
    with ended_as_by_ctrl_c():
        folder = new_run_folder(Path(results), name or run_name(settings))
        record = measure(folder, settings, showing=showing(folder))
        (_print if as_json else show_record)(record)
        if with_spark and record["status"] == "partial":
            click.echo(f"no tables of a partial run; make them with: exchange report {folder}", err=True)
        elif with_spark:
            show_seconds(folder, quiet=as_json)
        page = _page(folder) if with_page else None
    if page and not as_json:
        click.echo(f"page: {page}")
    return exit_code(record)


def _showing(settings: RunSettings, live: bool, live_spark: bool) -> Callable[[Path], AbstractContextManager[OnSecond]]:
    """What says how it goes, once there is a folder. UserError where a window has no terminal."""
    if live_spark:
        from experiments.spark_live.beside import spark_beside

        return partial(spark_beside, settings)
    if not live:
        return lambda _: progress_bar(settings)
    from experiments.live.window import live_window, terminal

    return partial(live_window, settings, terminal())


def _page(folder: Path) -> Path:
    """What draws it takes half a second to import, which no run should wait for."""
    from experiments.page.writer import write_page

    return write_page(folder)


def _check(settings: RunSettings) -> None:
    """UserError where it could not run, or would leave nothing to analyse."""
    length_s = settings.length_s
    if length_s is not None and settings.warm_up_s and math.ceil(settings.warm_up_s) >= length_s:
        raise UserError(f"--warm-up {settings.warm_up_s:g} leaves nothing of a run of {length_s:g} s to analyse")
    warn_of_rejections(settings)
    runs_in_one_process(settings)


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


def _print(record: dict[str, Any]) -> None:
    """run.json's bytes on stdout, what is wrong on stderr."""
    for reason in record["reasons"]:
        click.echo(f"{record['status']}: {reason}", err=True)
    click.echo(orjson.dumps(record, option=orjson.OPT_INDENT_2))


def measure(
    folder: Path, settings: RunSettings, brokers: Brokers | None = None,
    showing: AbstractContextManager[OnSecond] | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Run the components and keep the record; a private broker is one of `brokers`, or the run's own.

    `showing` says how it goes, in place of a progress bar.
    """
    started_at, host = now(), host_facts()
    try:
        with showing or progress_bar(settings) as on_second:
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
    return write_record(folder, known, outcome)


def _started(
    folder: Path, settings: RunSettings, brokers: Brokers | None, on_second: OnSecond
) -> tuple[str | None, Outcome]:
    """(the engine's URL, what came out)."""
    if runs_in_one_process(settings):
        from experiments.threads import run_in_threads

        return run_in_threads(folder, settings, on_second)
    from experiments.launcher import launch

    return launch(folder, settings, on_second, brokers)
