"""`exchange network`: the networks that a run can have on this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
import orjson

from exchange_simulation.cli.main import CommandGroup
from exchange_simulation.launching.errors import UserError
from exchange_simulation.launching.options import json_option

if TYPE_CHECKING:
    from exchange_simulation.launching.network.probe import Machine
    from exchange_simulation.launching.network.profile import Profile

MECHANISMS = {
    None: "no",
    "loopback": "loopback, nothing done",
    "veth": "namespaces and veth",
    "netem": "namespaces, veth and netem",
    "wire": "namespaces, veth and a wire in user space",
}


@click.group(cls=CommandGroup)
def command() -> None:
    """The networks between a run's components: what this machine can emulate.

    Example: exchange network list
    """


@command.command("list")
@json_option
def list_networks(as_json: bool) -> None:
    """Each network with its rate, its delay, and how it is made here, or why it cannot be."""
    from exchange_simulation.launching.network.probe import probe
    from exchange_simulation.launching.network.profile import PROFILES

    machine = probe()
    rows = [_row(profile, machine) for profile in PROFILES.values()]
    missing = [str(finding) for finding in machine.findings.values() if not finding.works]
    if as_json:
        click.echo(orjson.dumps({"networks": rows, "missing": missing}).decode())
        return
    click.echo(f"{'network':8} {'rate':>13} {'one way':>10}  here")
    for row in rows:
        rate = "" if row["rate_bit_per_s"] is None else f"{row['rate_bit_per_s'] // 1_000_000:,} Mbit/s"
        delay = "" if row["delay_us"] is None else f"{row['delay_us']:,g} us"
        click.echo(f"{row['name']:8} {rate:>13} {delay:>10}  {MECHANISMS[row['mechanism']]}")
    for finding in missing:
        click.echo(f"not here: {finding}")


def _row(profile: Profile, machine: Machine) -> dict[str, Any]:
    """The network as --json prints it, with the reason if this machine cannot emulate it."""
    row = {"name": profile.name, "rate_bit_per_s": profile.rate_bit_per_s, "delay_us": profile.delay_us}
    try:
        return {**row, "mechanism": machine.mechanism(profile)}
    except UserError as error:
        return {**row, "mechanism": None, "reason": error.message}
