"""`exchange faults`: one fault in each of many runs, and the orders that are lost."""

from __future__ import annotations

import click

from exchange_simulation.cli.command import Command
from exchange_simulation.launching.option_types import Listed, Scheme
from exchange_simulation.launching.options import json_option, options_for, results_option
from exchange_simulation.launching.typed_settings import was_typed


@click.command(cls=Command)
@click.option(
    "--transports",
    type=Listed(Scheme()),
    default="zeromq,tcp,amqp",
    show_default=True,
    metavar="SCHEME[?OPTION=VALUE][,...]",
    help="What carries the orders, as in redis?kind=stream.",
)
@click.option(
    "--delivery",
    "deliveries",
    type=Listed(click.STRING),
    default="lossy,confirmed,durable",
    show_default=True,
    metavar="WORD[,...]",
    help="Delivery guarantees to try over a broker.",
)
@click.option(
    "--faults",
    type=Listed(click.STRING),
    default="all",
    show_default=True,
    metavar="FAULT[,...]",
    help="Faults to try; --list names them.",
)
@click.option(
    "--quick", is_flag=True, help="Shorter runs, and one guarantee, confirmed, unless --delivery names others."
)
@click.option("--list", "listing", is_flag=True, help="List the faults, and run nothing.")
@options_for("hosts")
@results_option
@click.option("--name", help="The folder in DIR.  [default: time and command]")
@json_option
@click.argument("run_options", nargs=-1, type=click.UNPROCESSED, metavar="[-- RUN OPTIONS]")
def command(
    transports: list[str],
    deliveries: list[str],
    faults: list[str],
    quick: bool,
    listing: bool,
    hosts: str | None,
    results: str,
    name: str | None,
    as_json: bool,
    run_options: tuple[str, ...],
) -> None:
    """Break one thing in each of many runs, and count the orders that are lost.

    Each cell of the matrix is a run over one transport, with one fault. The exit code is 1 if an order is missing from
    a run's record, a run hung, or no fault could be tried.

    Example: exchange faults --transports zeromq,amqp --faults engine-kill,connection-reset

    \b
    exchange faults --list                    # the faults, and what each does
    exchange faults --quick -- --recover      # options behind -- are those of every run
    exchange faults --hosts hosts.toml --faults engine-kill -- --insecure
    """
    from exchange_simulation.experiments.faults.injection import FAULTS
    from exchange_simulation.experiments.faults.load import FaultLoad
    from exchange_simulation.experiments.faults.matrix import planned, run_matrix
    from exchange_simulation.launching.transport_checks import check_settings_fit_a_transport

    if listing:
        width = max(map(len, FAULTS))
        click.echo("\n".join(f"{fault.name:<{width}}  {fault.description}" for fault in FAULTS.values()))
        return
    if was_typed("deliveries"):
        check_settings_fit_a_transport({"delivery": ",".join(deliveries)}, transports)
    elif quick:
        deliveries = ["confirmed"]
    if faults == ["all"]:
        faults = list(FAULTS)
    if hosts is not None:
        run_options = ("--hosts", hosts, *run_options)
    load = FaultLoad(seconds=4.0, timeout_s=2.0, fault_s=1.5, lasts_s=1.0) if quick else FaultLoad()
    plan = planned(transports, deliveries, faults, load, run_options)
    raise SystemExit(run_matrix(plan, results, name, as_json))
