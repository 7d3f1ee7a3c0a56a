"""Carries out `exchange run`: one run with its progress, table and page."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any

import click
import orjson

from exchange.settings import RunSettings
from reports.live.progress import progress_bar
from reports.run.seconds import show_seconds
from reports.run.terminal import show_record
from runs.errors import UserError
from runs.folder import new_run_folder, run_name
from runs.interrupts import ended_as_by_ctrl_c
from runs.launch.moment import OnSecond
from runs.options import warn_of_rejections
from runs.record.record import exit_code
from runs.run import measure, runs_in_one_process


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
        record = measure(folder, settings, showing(folder))
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
        from reports.live_spark.beside import spark_beside

        return partial(spark_beside, settings)
    if not live:
        return lambda _: progress_bar(settings)
    from reports.live.window import live_window, terminal

    return partial(live_window, settings, terminal())


def _page(folder: Path) -> Path:
    """What draws it takes half a second to import, which no run should wait for."""
    from reports.run.page import write_page

    return write_page(folder)


def _check(settings: RunSettings) -> None:
    """UserError where it could not run, or would leave nothing to analyse."""
    length_s = settings.length_s
    if length_s is not None and settings.warm_up_s and math.ceil(settings.warm_up_s) >= length_s:
        raise UserError(f"--warm-up {settings.warm_up_s:g} leaves nothing of a run of {length_s:g} s to analyse")
    warn_of_rejections(settings)
    runs_in_one_process(settings)


def _print(record: dict[str, Any]) -> None:
    """run.json's bytes on stdout, what is wrong on stderr."""
    for reason in record["reasons"]:
        click.echo(f"{record['status']}: {reason}", err=True)
    click.echo(orjson.dumps(record, option=orjson.OPT_INDENT_2))
