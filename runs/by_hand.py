"""A run whose components were started by hand: the reporter, which hears everybody's result, keeps the record."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import click

from exchange.instances import named, role_of
from exchange.results import ReporterResult
from exchange.settings import RunSettings
from runs.lineup import Lineup
from runs.record.host import host_facts, now, versions
from runs.record.outcome import Outcome, outcome_of, read_results
from runs.record.record import Conditions, exit_code, make_record
from runs.record.record import write_record as write
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


def write_record(
    folder: Path, before: Conditions, reporter: ReporterResult, instance: int, who: RunSettings, cpu: int | None
) -> int:
    """run.json on the reporter's host, of the pairs that report to it; the exit code. `who` takes part in the run."""
    lineup, name = Lineup.of(who).part_of(instance), named("reporter", instance)
    outcome = outcome_of(lineup, {**read_results(reporter.results), name: reporter})
    known = _of_gateways(outcome, {"pairs": who.pairs, "reporters": who.reporters}, {} if cpu is None else {name: cpu})
    record = write(folder, make_record(folder, replace(before, **known), outcome))
    for reason in record["reasons"]:
        click.echo(f"{name}: {record['status']}: {reason}", err=True)
    click.echo(f"{name}: {record['status']}, see {folder / 'run.json'}", err=True)
    return exit_code(record)


def _of_gateways(outcome: Outcome, told: dict[str, int], cpus: dict[str, int]) -> dict[str, Any]:
    """Settings and URL, as the first gateway had them; unknown where none left a result. Engines say no processor.

    `told` and `cpus` are what the reporter itself was told.
    """
    if not outcome.gateways:
        return {}
    settings = outcome.gateways[min(outcome.gateways)].settings
    url = str(settings["transport"])
    theirs = {named("gateway", pair): gateway.settings["cpus"] for pair, gateway in outcome.gateways.items()}
    known = {"cpus": {name: of["gateway"] for name, of in theirs.items() if of} | cpus, "nagle": _nagle(outcome)}
    return {"url": url, "settings": {**settings, **told, **known, "transport": scheme_of(url)}}


def _nagle(outcome: Outcome) -> list[str]:
    """Whose sockets were started with nodelay=off."""
    off = [name for name, ends in outcome.sockets.items() if any(not end["tcp_nodelay_asked"] for end in ends)]
    return list(dict.fromkeys(map(role_of, off)))
