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

from experiments.brokers_held import Brokers
from experiments.compare.announcing import announcement, listing
from experiments.compare.page import write_page
from experiments.compare.table import show
from experiments.errors import UserError
from experiments.interrupts import ended_as_by_ctrl_c
from experiments.run_folder import new_run_folder, write_json
from experiments.trials.execution import execute, to_do
from experiments.trials.measuring import measured
from experiments.trials.plan import Plan
from experiments.trials.plan_file import plan_as_dict, read_plan, write_plan
from experiments.trials.progress import Progress
from experiments.trials.results import results


def show_plan(plan: Plan, as_json: bool) -> int:
    """What would be run, and nothing else."""
    if as_json:
        click.echo(orjson.dumps(plan_as_dict(plan), option=orjson.OPT_INDENT_2))
    else:
        steps = [*plan.warm_ups, *plan.steps]
        _say([*announcement(plan, steps), *listing(steps)])
    return 0


def compare(plan: Plan, parent: str, name: str | None, as_json: bool) -> int:
    """A new comparison. The exit code: 0, or 1 where a planned run is missing."""
    folder = new_run_folder(Path(parent), name or f"{time.strftime('%Y%m%d-%H%M%S')}-compare-{secrets.token_hex(3)}")
    write_plan(folder, plan)
    try:
        with ended_as_by_ctrl_c():
            return _go_on(folder, plan, as_json)
    except UserError:
        shutil.rmtree(folder)
        raise


def resume(parent: str, name: str, as_json: bool) -> int:
    """What an interrupted comparison has left; with nothing left, its table and page are made again."""
    folder = Path(parent) / name
    plan = read_plan(folder)
    with ended_as_by_ctrl_c():
        return _go_on(folder, plan, as_json)


def _go_on(folder: Path, plan: Plan, as_json: bool) -> int:
    steps = to_do(folder, plan)
    _say(announcement(plan, steps), to_stderr=as_json)
    with Brokers() as brokers:
        ended = execute(folder, steps, partial(measured, brokers=brokers), Progress(steps))
    record = results(folder, plan)
    write_json(folder / "comparison.json", record)
    page = write_page(folder, record)
    _report(folder, record, page, as_json)
    if not ended:
        click.echo(f"interrupted; what was measured is kept: exchange compare --resume {folder.name} goes on", err=True)
    return 0 if record["status"] == "complete" else 1


def _report(folder: Path, record: dict[str, Any], page: Path, as_json: bool) -> None:
    if as_json:
        click.echo((folder / "comparison.json").read_bytes(), nl=False)
        return
    show(record)
    click.echo(f"page: {page}")


def _say(sentences: Iterable[str], to_stderr: bool = False) -> None:
    say: Callable[..., None] = click.echo
    for sentence in sentences:
        say(sentence, err=to_stderr)
