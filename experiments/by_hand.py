"""A run whose components were started by hand: the reporter, which hears everybody's result, keeps the record."""

from __future__ import annotations

import time
from pathlib import Path

import click

from exchange.results import ReporterResult
from exchange.settings import RunSettings
from experiments.host import host_facts, versions
from experiments.record import Conditions, engine_result, gateway_result
from experiments.record import write_record as write
from experiments.status import Outcome


def write_record(folder: Path, reporter: ReporterResult) -> None:
    """run.json on the reporter's host; `host` and `versions` are this host's."""
    gateway = gateway_result(reporter.results.get("gateway"))
    engine = engine_result(reporter.results.get("engine"))
    settings = gateway.settings if gateway else RunSettings().as_dict()
    conditions = Conditions(
        name=folder.name, url="", settings=settings, host=host_facts(), versions=versions(),
        started_at=time.strftime("%Y-%m-%dT%H:%M:%S%z"),
    )  # fmt: skip
    record = write(folder, conditions, Outcome(gateway=gateway, engine=engine, reporter=reporter))
    click.echo(f"reporter: {record['status']}, see {folder / 'run.json'}", err=True)
