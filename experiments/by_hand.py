"""A run whose components were started by hand: the reporter, which hears everybody's result, keeps the record."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import click

from exchange.results import GatewayResult, ReporterResult
from experiments.host import host_facts, now, versions
from experiments.record import Conditions, engine_result, exit_code, gateway_result
from experiments.record import write_record as write
from experiments.status import Outcome
from transports.amqp.address import mask
from transports.registry import scheme_of


def settings_of_url(engine_url: str) -> dict[str, Any]:
    """What the gateway's settings say of the transport, where all that was given is the engine's URL."""
    options = dict(parse_qsl(engine_url.partition("?")[2]))
    broker = {"amqp_client": options.get("client"), "delivery": options.get("delivery")}
    own = broker if scheme_of(engine_url) in {"amqp", "amqps"} else {}
    return {"transport": mask(engine_url), "topology": options.get("topology", "duplex"), **own}


def conditions(name: str) -> Conditions:
    """What the reporter knows before anybody came; `host` and `versions` are its own."""
    return Conditions(name=name, url=None, settings={}, host=host_facts(), versions=versions(), started_at=now())


def write_record(folder: Path, before: Conditions, reporter: ReporterResult, cpu: int | None) -> int:
    """run.json on the reporter's host; the exit code."""
    gateway = gateway_result(reporter.results.get("gateway"))
    engine = engine_result(reporter.results.get("engine"))
    outcome = Outcome(gateway=gateway, engine=engine, reporter=reporter)
    known = replace(before, **_of_gateway(gateway, cpu))
    if known.settings:
        known.settings["nagle"] = _nagle(outcome)
    record = write(folder, known, outcome)
    for reason in record["reasons"]:
        click.echo(f"reporter: {record['status']}: {reason}", err=True)
    click.echo(f"reporter: {record['status']}, see {folder / 'run.json'}", err=True)
    return exit_code(record)


def _of_gateway(gateway: GatewayResult | None, cpu: int | None) -> dict[str, Any]:
    """Settings and URL, as the gateway had them; unknown where it left no result. The engine says no processor."""
    if gateway is None:
        return {}
    url = str(gateway.settings["transport"])
    cpus = {**gateway.settings["cpus"], **({} if cpu is None else {"reporter": cpu})}
    return {"url": url, "settings": {**gateway.settings, "transport": scheme_of(url), "cpus": cpus}}


def _nagle(outcome: Outcome) -> list[str]:
    """Whose sockets were started with nodelay=off."""
    return [role for role, ends in outcome.sockets.items() if any(not end["tcp_nodelay_asked"] for end in ends)]
