"""Reruns and repairs: settings from a record, what will differ from the first time, a killed run's run.json."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import click

from exchange.allowed import BadSetting
from exchange.json_records import Record, section
from exchange.settings import RunSettings
from exchange.words import printable
from exchange_simulation.cli.results.difference import ABSENT, Parts, differing_parts
from exchange_simulation.launching.errors import UserError
from exchange_simulation.launching.record.begun import repair
from exchange_simulation.launching.record.machine import host_facts, versions
from exchange_simulation.launching.record.reading import UnknownSettings, settings_as_written
from exchange_simulation.launching.transport_defaults import with_transport_defaults
from exchange_simulation.reports.formats.settings import setting_text

NEEDED_SETTINGS = ("transport", "orders_per_s", "orders", "seed")
"""Settings that a record must name. Other settings may be missing: their defaults are the behaviour before them."""
LOOPBACK = {"127.0.0.1", "::1", "localhost"}


def settings_of_record(path: Path, written: Record) -> RunSettings:
    """Return the settings of the record at `path`. UserError if they cannot be run."""
    missing = [name for name in NEEDED_SETTINGS if name not in written]
    if missing:
        raise UserError(f"{path} does not say what was run: its settings lack {', '.join(missing)}")
    try:
        return with_transport_defaults(settings_as_written(written))
    except UnknownSettings as error:
        raise UserError(f"{path} was written by another version of exchange: {error}; use that version") from error
    except (BadSetting, TypeError) as error:
        raise UserError(f"{path} holds settings that nothing can be run with: {error}") from error


def refuse_journal_elsewhere(folder: Path, settings: RunSettings) -> None:
    """UserError if a rerun would write a journal to the recorded path, which somebody else may have chosen."""
    if settings.journal is not None:
        raise UserError(
            f"{folder} was run with --journal {settings.journal}, and a rerun would write into that file: type its "
            "command yourself, with the path that you want"
        )


def warn_of_differences(then: Record, settings: RunSettings | None = None) -> None:
    """Print one line with the differences between the first run and its rerun, if there are any."""
    differences = list(differences_since(then, settings))
    if differences:
        click.echo(f"unlike then: {'; '.join(differences)}", err=True)


def differences_since(then: Record, settings: RunSettings | None = None) -> Iterator[str]:
    """Yield the differences in host, versions and meeting place. `then` is a run's record, or a trial's conditions."""
    now = {"host": host_facts(), "versions": versions()}
    recorded_parts: Parts = {part: None for part in now if section(then, part)}
    for row in differing_parts(then, now, recorded_parts):
        yield f"{row['field']} was {_value(row, 'first')}, is {_value(row, 'second')}"
    place = _other_meeting_place(then, settings) if settings else None
    if place:
        yield f"the components met at {place}, and now do on this machine"


def _value(row: Record, side: str) -> str:
    return setting_text(row[side]) if side in row else ABSENT


def _other_meeting_place(record: Record, settings: RunSettings) -> str | None:
    """Return the other host where the components of a run by hand met; None if they met on this machine."""
    if "://" in settings.transport or settings.network != "local":
        return None
    try:
        url = urlsplit(str(section(record, "settings").get("url")))
        port = url.port
    except ValueError:
        return None
    if port is None or url.hostname in LOOPBACK:
        return None
    return f"{url.hostname}:{port}"


def repair_all(folders: Iterable[Path], err: bool = True) -> bool:
    """Repair runs that were left unfinished, and print each. Returns False if one could not be repaired."""
    all_repaired = True
    for folder in folders:
        try:
            repair_and_report(folder, err)
        except click.ClickException as error:
            click.echo(printable(f"{folder} is left as it is: {error.format_message()}"), err=True)
            all_repaired = False
    return all_repaired


def repair_and_report(folder: Path, err: bool = False) -> None:
    """Write run.json of a run whose launcher died before writing it, and print the run's status."""
    record = repair(folder)
    reasons = "; ".join(record["reasons"])
    click.echo(printable(f"repaired {folder}: {record['status']}: {reasons}"), err=err)
