"""A comparison from its plan to its record, table and page."""

from __future__ import annotations

import secrets
import shutil
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import click
import orjson

from experiments.trials.announcing import announcement, listing
from experiments.trials.execution import execute, to_do
from experiments.trials.measuring import measured
from experiments.trials.plan import Plan
from experiments.trials.plan_file import plan_as_dict, read_plan, write_plan
from experiments.trials.progress import Progress
from experiments.trials.results import results
from experiments.trials.study import COMPARE, Study
from reports.comparison.page import write_page
from reports.comparison.table import show
from reports.rows import trial_rows
from runs.broker.brokers_held import Brokers
from runs.errors import UserError
from runs.folder import new_run_folder, write_json
from runs.interrupts import ended_as_by_ctrl_c

Show = Callable[[dict[str, Any]], None]
"""The outcome in the terminal, from comparison.json's content."""


def show_plan(plan: Plan, as_json: bool) -> int:
    """What would be run, and nothing else."""
    if as_json:
        click.echo(orjson.dumps(plan_as_dict(plan), option=orjson.OPT_INDENT_2))
    else:
        steps = [*plan.warm_ups, *plan.steps]
        _say([*announcement(plan, steps), *listing(steps)])
    return 0


def compare(plan: Plan, parent: str, name: str | None, as_json: bool, show: Show = show) -> int:
    """A new comparison. The exit code: 0, or 1 where a planned run is missing."""
    unnamed = f"{time.strftime('%Y%m%d-%H%M%S')}-{plan.study.name}-{secrets.token_hex(3)}"
    folder = new_run_folder(Path(parent), name or unnamed)
    write_plan(folder, plan)
    try:
        with ended_as_by_ctrl_c():
            return _go_on(folder, plan, as_json, show)
    except UserError:
        shutil.rmtree(folder)
        raise


def resume(parent: str, name: str, as_json: bool, study: Study = COMPARE, show: Show = show) -> int:
    """What an interrupted comparison has left; with nothing left, its table and page are made again."""
    folder = Path(parent) / name
    plan = read_plan(folder)
    if plan.study is not study:
        raise UserError(
            f"{folder} was made by exchange {plan.study.name}: type exchange {plan.study.name} --resume {name}"
        )
    with ended_as_by_ctrl_c():
        return _go_on(folder, plan, as_json, show)


def _go_on(folder: Path, plan: Plan, as_json: bool, show: Show) -> int:
    steps = to_do(folder, plan)
    _say(announcement(plan, steps), to_stderr=as_json)
    with Brokers() as brokers:
        ended = execute(folder, steps, partial(measured, brokers=brokers), Progress(steps), plan.pause_s)
    record = results(folder, plan)
    write_json(folder / "comparison.json", record)
    page = write_page(folder, record)
    if as_json and plan.study.rows_as_json:
        click.echo(orjson.dumps(trial_rows(record), option=orjson.OPT_INDENT_2))
    elif as_json:
        click.echo((folder / "comparison.json").read_bytes(), nl=False)
    else:
        show(record)
        click.echo(f"page: {page}")
    if not ended:
        again = f"exchange {plan.study.name} --resume {folder.name}"
        click.echo(f"interrupted; what was measured is kept: {again} goes on", err=True)
    return 0 if record["status"] == "complete" else 1


def _say(sentences: Iterable[str], to_stderr: bool = False) -> None:
    say: Callable[..., None] = click.echo
    for sentence in sentences:
        say(sentence, err=to_stderr)
