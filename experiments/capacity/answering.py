"""`exchange capacity`, from what was asked to its record and its answer."""

from __future__ import annotations

import contextlib
import secrets
import shutil
import time
from pathlib import Path
from typing import Any

import click
import orjson

from exchange.settings import RunSettings
from experiments.capacity.finding import Finding, Search
from experiments.capacity.objective import Objective
from experiments.capacity.probing import Probe, Prober
from experiments.capacity.table import show
from experiments.trials.execution import CtrlC
from runs.broker.brokers_held import Brokers
from runs.errors import UserError
from runs.folder import new_run_folder, write_json
from runs.interrupts import ended_as_by_ctrl_c
from runs.record.host import host_facts, now, versions
from runs.run import runs_in_one_process

SCHEMA = 1
FILE = "capacity.json"


def capacity(settings: RunSettings, objective: Objective, search: Search, folder: Path, as_json: bool) -> int:
    """The exit code: 0 where the search came to its end, else 1."""
    runs_in_one_process(settings)
    new_run_folder(folder.parent, folder.name)
    known = {"schema": SCHEMA, "name": folder.name, "started_at": now(), "objective": objective.words,
             "settings": settings.as_dict(), "host": host_facts(), "versions": versions()}  # fmt: skip
    with ended_as_by_ctrl_c(), CtrlC() as ctrl_c, Brokers() as brokers:

        def tell(probe: Probe) -> None:
            click.echo(f"{probe.rate_per_s:>12,.0f} orders/s: {probe.why or 'held'}", err=True)
            write_json(folder / FILE, {**known, **finding.as_dict()})

        prober = Prober(folder, settings, objective, brokers, search.pause_s, tell, lambda: ctrl_c.pressed)
        finding = Finding(prober, search)
        _find(finding, folder)
    record = {**known, **finding.as_dict()}
    write_json(folder / FILE, record)
    _show(record, folder, as_json)
    return 1 if finding.stopped else 0


def _find(finding: Finding, folder: Path) -> None:
    """A mistake that shows before anything was measured leaves nothing."""
    try:
        with contextlib.suppress(KeyboardInterrupt):
            finding.find()
    except UserError as error:
        if not finding.prober.probes:
            shutil.rmtree(folder)
            raise
        finding.stopped = error.message


def _show(record: dict[str, Any], folder: Path, as_json: bool) -> None:
    if as_json:
        click.echo(orjson.dumps(record, option=orjson.OPT_INDENT_2))
        return
    show(record)
    click.echo(f"record: {folder / FILE}")


def unnamed() -> str:
    """A folder's name where the user gave none."""
    return f"{time.strftime('%Y%m%d-%H%M%S')}-capacity-{secrets.token_hex(3)}"
