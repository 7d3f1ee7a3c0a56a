"""`exchange network list`: what each profile would be here, or why not."""

from __future__ import annotations

from typing import Any

import click
import orjson

from runs.errors import UserError
from runs.network.probe import Machine, probe
from runs.network.profile import MBIT, PROFILES, Profile

_HOW = {
    "loopback": "loopback, nothing done",
    "veth": "namespaces and veth",
    "netem": "namespaces, veth and netem",
    "wire": "namespaces, veth and a wire in user space",
}


def show(as_json: bool) -> None:
    machine = probe()
    rows = [_row(profile, machine) for profile in PROFILES.values()]
    if as_json:
        click.echo(orjson.dumps({"networks": rows, "missing": _missing(machine)}).decode())
        return
    click.echo(f"{'network':8} {'rate':>13} {'one way':>10}  here")
    for row in rows:
        click.echo(f"{row['name']:8} {_rate(row):>13} {_delay(row):>10}  {_how(row)}")
    for missing in _missing(machine):
        click.echo(f"not here: {missing}")


def _row(profile: Profile, machine: Machine) -> dict[str, Any]:
    row = {"name": profile.name, "rate_bit_per_s": profile.rate_bit_per_s, "delay_us": profile.delay_us}
    try:
        return {**row, "mechanism": machine.mechanism(profile)}
    except UserError as error:
        return {**row, "mechanism": None, "reason": error.message}


def _missing(machine: Machine) -> list[str]:
    return [str(finding) for finding in machine.findings.values() if not finding.works]


def _rate(row: dict[str, Any]) -> str:
    return "" if row["rate_bit_per_s"] is None else f"{row['rate_bit_per_s'] // MBIT:,} Mbit/s"


def _delay(row: dict[str, Any]) -> str:
    return "" if row["delay_us"] is None else f"{row['delay_us']:,g} us"


def _how(row: dict[str, Any]) -> str:
    return _HOW[row["mechanism"]] if row["mechanism"] else "no"
