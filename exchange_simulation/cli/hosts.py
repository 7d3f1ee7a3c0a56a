"""`exchange hosts`: whether the hosts of --hosts can take part in a run, and files that make a cluster of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from exchange.instances import MAX_PAIRS
from exchange.words import printable
from exchange_simulation.cli.main import CommandGroup
from exchange_simulation.launching.errors import UserError
from exchange_simulation.launching.options import json_option, options_for
from exchange_simulation.launching.typed_settings import run_settings

if TYPE_CHECKING:
    import contextlib

    from exchange_simulation.launching.hosts.examination import HostFinding
    from exchange_simulation.launching.process_group import ProcessGroup


@click.group(cls=CommandGroup)
def command() -> None:
    """The hosts of a run with --hosts: whether they can take part, and files for a cluster.

    Example: exchange hosts check hosts.toml
    """


@command.command("check")
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@options_for("transport", "pairs", "reporters", "gateways", "engines", "instruments", "subscribers")
@json_option
def check(file: Path, as_json: bool, **given: Any) -> None:
    """Whether exchange run --hosts FILE could start: each host's version of exchange, processor, kernel and clock.

    Give the options below as you give them to the run: they decide which components there are. A file with [publisher]
    or [consumer] and without tables of a run is a benchmark's: its hosts are looked at, and exchange bench --hosts
    checks the addresses.

    The exit code is 1 if a host cannot take part, 2 if the file has a mistake.

    Example: exchange hosts check hosts.toml
    """
    from exchange_simulation.launching.hosts.checks import checked_hosts, exposure
    from exchange_simulation.launching.hosts.examination import examined
    from exchange_simulation.launching.hosts.hosts_file import read_hosts_file

    hosts_file = read_hosts_file(file)
    exposed = None
    if not hosts_file.is_of_benchmark:
        settings = run_settings(hosts=str(file), **given)
        hosts_file = checked_hosts(settings)
        exposed = exposure(settings, hosts_file)
    findings = examined(hosts_file)
    if as_json:
        from exchange_simulation.reports.exports import print_json

        print_json({"hosts": [_as_record(finding) for finding in findings]})
    else:
        _show(findings)
        if exposed is not None:
            advice = "give the run --secure DIR (exchange keys makes one), or --insecure on your own network"
            click.echo(printable(f"{exposed}: {advice}"), err=True)
    raise SystemExit(1 if any(finding.problems for finding in findings) else 0)


def _as_record(finding: HostFinding) -> dict[str, Any]:
    """Return the finding as --json prints it."""
    clock = finding.clock
    return {
        "host": finding.host.name,
        "components": finding.components,
        "facts": finding.facts,
        "versions": finding.versions,
        "clock_offset_us": None if clock is None else clock.middle_ns / 1e3,
        "clock_bound_us": None if clock is None else clock.bound_ns / 1e3,
        "problems": finding.problems,
    }


def _show(findings: list[HostFinding]) -> None:
    """Print a table of the hosts that answered, and a sentence for each problem."""
    from exchange_simulation.reports.tables import figure_column, key_column, plain_table, terminal, words_column

    table = plain_table(
        key_column("components"),
        figure_column("cores"),
        figure_column("clock +- us"),
        words_column("exchange"),
        words_column("kernel"),
        words_column("host"),
    )
    for finding in findings:
        table.add_row(
            ", ".join(finding.components),
            str(finding.facts.get("cores", "")),
            "" if finding.clock is None else f"{finding.clock.bound_ns / 1e3:,.0f}",
            str(finding.versions.get("exchange", "")),
            str(finding.facts.get("kernel", "")),
            finding.host.name,
        )
    terminal().print(table)
    for finding in findings:
        for problem in finding.problems:
            click.echo(printable(problem), err=True)


folder_argument = click.argument("folder", metavar="DIR", type=click.Path(path_type=Path, file_okay=False))
image_option = click.option(
    "--image",
    default="exchange",
    show_default=True,
    help="The image with exchange, as Containerfile makes it.",
)
pairs_option = click.option(
    "--pairs",
    type=click.IntRange(1, MAX_PAIRS),
    default=1,
    show_default=True,
    help="Number of gateways, each with an engine, each in a container of its own.",
)


@command.command("compose")
@folder_argument
@image_option
@pairs_option
def compose(folder: Path, image: str, pairs: int) -> None:
    """Write a compose file with a container for each component, and its hosts.toml, into a new folder DIR.

    Example: exchange hosts compose containers
    """
    from exchange_simulation.launching.hosts.cluster_files import containers_of, write_compose

    _make(folder)
    files = write_compose(folder, containers_of(pairs), image)
    _tell_next_steps(
        files, pairs, start=f"docker compose -f {files[0]} up -d", end=f"docker compose -f {files[0]} down"
    )


@command.command("kubernetes")
@folder_argument
@image_option
@pairs_option
@click.option(
    "--seconds",
    type=click.IntRange(60, 7 * 86_400),
    default=3600,
    show_default=True,
    help="The jobs end by themselves after this many seconds.",
)
def kubernetes(folder: Path, image: str, pairs: int, seconds: int) -> None:
    """Write Kubernetes jobs, a pod for each component, and their hosts.toml, into a new folder DIR.

    Example: exchange hosts kubernetes pods
    """
    from exchange_simulation.launching.hosts.cluster_files import containers_of, write_kubernetes

    _make(folder)
    files = write_kubernetes(folder, containers_of(pairs), image, seconds)
    _tell_next_steps(files, pairs, start=f"kubectl apply -f {files[0]}", end=f"kubectl delete -f {files[0]}")


def _make(folder: Path) -> None:
    """Make the new folder. UserError if it exists, or cannot be made."""
    try:
        folder.mkdir(parents=True)
    except FileExistsError as error:
        raise UserError(f"{folder} exists already: choose another folder") from error
    except OSError as error:
        raise UserError(f"cannot make {folder}: {error.strerror}") from error


def _tell_next_steps(files: list[Path], pairs: int, start: str, end: str) -> None:
    """Print the files, and the commands from the first container to the last."""
    containers, hosts = files
    click.echo(printable(f"wrote {containers} and {hosts}; next:"))
    of_pairs = f" --pairs {pairs}" if pairs > 1 else ""
    look = f"exchange hosts check {hosts}{of_pairs}"
    measure = f"exchange run --hosts {hosts} --insecure{of_pairs}"
    for step in (start, look, measure, end):
        click.echo(printable(f"  {step}"))


@command.command("agent", hidden=True)
def serve_agent() -> None:
    """Answer a launcher on another host, over stdin and stdout."""
    from exchange_simulation.launching.hosts.agent import serve_launcher

    serve_launcher(_start_broker)


def _start_broker(asked: dict[str, Any], processes: ProcessGroup, until_end: contextlib.ExitStack) -> dict[str, Any]:
    """Start a broker on this host for a run of another host; return its URL and environment.

    `asked` has settings of the run, and the address on which the broker listens. UserError or TransportError.
    """
    from exchange_simulation.launching.launch.brokers import Brokers, broker_of_run
    from exchange_simulation.launching.typed_settings import run_settings

    address = asked.pop("address")
    brokers = until_end.enter_context(Brokers(processes, takes_standing=False, address=address))
    running = broker_of_run(run_settings(**{**asked, "nagle": tuple(asked["nagle"])}), brokers)
    return {"url": running.url, "environment": dict(running.environment)}


@command.command("roles", hidden=True)
def roles() -> None:
    """Fork roles of a benchmark for a launcher on another host, over stdin and stdout."""
    from exchange_simulation.messaging.hosts.role_server import serve_roles

    serve_roles()


@command.command("relay", hidden=True)
@click.argument("component", required=False)
def relay(component: str | None) -> None:  # noqa: ARG001 - the name is for lists of processes
    """Start a component for a launcher on another host, and pass lines between the two."""
    from exchange_simulation.launching.hosts.relay import relay_component

    raise SystemExit(relay_component())
