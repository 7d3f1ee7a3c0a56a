"""One run, from settings to record, table and page."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import click
import orjson

from exchange.settings import RunSettings
from experiments.errors import UserError
from experiments.host import host_facts, versions
from experiments.page import write_page
from experiments.present import progress_bar, show_record
from experiments.record import Conditions, write_record
from experiments.run_folder import new_run_folder, run_name
from experiments.seconds import show_seconds
from transports.base import BadAddress
from transports.registry import scheme_of, transport_of


def run(settings: RunSettings, results: str, name: str | None, with_spark: bool, as_json: bool) -> int:
    """The exit code: 0 for complete and saturated, 1 for invalid and partial."""
    try:
        scheme = scheme_of(settings.transport)
        one_process = scheme in transport_of(scheme).one_process
    except BadAddress as error:
        raise UserError(str(error)) from error
    folder = new_run_folder(Path(results), name or run_name(settings))
    record = measure(folder, settings, one_process)
    if as_json:
        for reason in record["reasons"]:
            click.echo(f"{record['status']}: {reason}", err=True)
        click.echo(orjson.dumps(record, option=orjson.OPT_INDENT_2))
    else:
        show_record(record)
    if with_spark:
        show_seconds(folder, quiet=as_json)
    page = write_page(folder)
    if not as_json:
        click.echo(f"page: {page}")
    return 0 if record["status"] in {"complete", "saturated"} else 1


def measure(folder: Path, settings: RunSettings, one_process: bool) -> dict[str, Any]:
    """Run the components and keep the record."""
    started_at = datetime.now().astimezone().isoformat()
    host = host_facts()
    try:
        with progress_bar(settings) as on_second:
            if one_process:
                from experiments.threads import run_in_threads as start
            else:
                from experiments.launcher import launch as start
            url, outcome = start(folder, settings, on_second)
    except (UserError, KeyboardInterrupt):
        _remove_if_empty(folder)
        raise
    known = Conditions(
        name=folder.name, url=url, settings=settings.as_dict(), host=host, versions=versions(), started_at=started_at
    )
    return write_record(folder, known, outcome)


def _remove_if_empty(folder: Path) -> None:
    """A run that never started leaves nothing behind."""
    for path in sorted(folder.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    folder.rmdir()
