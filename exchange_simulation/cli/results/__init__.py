"""`exchange results`: what was run, when, on what; what differs; and once more from its own record."""

from __future__ import annotations

from pathlib import Path

import click

from exchange_simulation.cli.main import CommandGroup
from exchange_simulation.launching.errors import UserError
from exchange_simulation.launching.option_types import OneOf, Scheme
from exchange_simulation.launching.options import json_option

STATUSES = ("complete", "saturated", "invalid", "partial", "interrupted", "running", "unfinished", "damaged", "newer")

results_option = click.option(
    "--results", default="results", show_default=True, metavar="DIR", help="Where runs and trials are kept."
)


def _names(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """The names to which a shell completes NAME, the newest first."""
    from exchange_simulation.cli.results.kinds import folders, kind_of

    results = Path(ctx.params.get("results") or "results")
    names = (path.name for path in folders(results) if kind_of(path) is not None)
    return sorted((name for name in names if name.startswith(incomplete)), reverse=True)


@click.group(cls=CommandGroup)
def command() -> None:
    """List what was run, show it again, compare two of them, or repeat one.

    NAME is a folder's name in DIR, TRIAL/RUN, a path, or a beginning or an end of a name that only one folder has.

    Example: exchange results list; exchange results show first
    """


@command.command("list")
@results_option
@click.option("--transport", type=Scheme(), metavar="SCHEME", help="Only what went over it.")
@click.option(
    "--status",
    type=OneOf(STATUSES),
    help="Only this status. Unfinished: killed before it had a record. Damaged, newer: it cannot be read.",
)
@click.option("--last", type=click.IntRange(min=1), metavar="N", help="Only the N newest.")
@json_option
def list_results(results: str, transport: str | None, status: str | None, last: int | None, as_json: bool) -> None:
    """List runs and trials, a line each, the newest last.

    p50 and p99 are of completion from due time.

    Example: exchange results list --transport amqp --last 10
    """
    from exchange_simulation.cli.results.listing import show_list

    show_list(Path(results), transport, status, last, as_json)


@command.command()
@click.argument("name", shell_complete=_names)
@results_option
@json_option
def show(name: str, results: str, as_json: bool) -> None:
    """Show a run or a trial as its command printed it, with the outcomes of its gate.

    Example: exchange results show first
    """
    from exchange_simulation.cli.results.kinds import find
    from exchange_simulation.launching.files import read_own_file
    from exchange_simulation.launching.record.reading import damage_named
    from exchange_simulation.reports.gate_outcomes import read_outcomes
    from exchange_simulation.reports.gate_sentences import show_gate

    folder, kind = find(Path(results), name)
    record = kind.read(folder)
    if as_json:
        click.echo(read_own_file(folder / kind.file), nl=False)
        return
    with damage_named(folder):
        kind.show(folder, record)
        show_gate(read_outcomes(folder))


@command.command()
@click.argument("first", metavar="A", shell_complete=_names)
@click.argument("second", metavar="B", shell_complete=_names)
@results_option
@json_option
def diff(first: str, second: str, results: str, as_json: bool) -> None:
    """Show what differs between two runs, two trials, or two others of a kind.

    Example: exchange results diff first second
    """
    from exchange_simulation.cli.results.kinds import find
    from exchange_simulation.launching.record.reading import damage_named
    from exchange_simulation.reports.exports import print_json

    first_folder, kind = find(Path(results), first)
    second_folder, second_kind = find(Path(results), second)
    if kind is not second_kind:
        raise UserError(
            f"{first_folder} is a {kind.name} and {second_folder} is a {second_kind.name}: give two of a kind"
        )
    first_record = kind.read(first_folder)
    second_record = kind.read(second_folder)
    with damage_named(first_folder, second_folder):
        difference = kind.differ(first_record, second_record)
        if as_json:
            print_json(difference)
        else:
            kind.show_difference(difference)


@command.command()
@click.argument("name", required=False, shell_complete=_names)
@results_option
def repair(name: str | None, results: str) -> None:
    """Write run.json of a run whose launcher died, from what the run left; without NAME, of all such runs in DIR.

    Example: exchange results repair first
    """
    from exchange_simulation.cli.results.kinds import find, folders
    from exchange_simulation.cli.results.rerun import repair_all, repair_and_report
    from exchange_simulation.launching.record.begun import left_unfinished

    if name is not None:
        folder, _ = find(Path(results), name)
        repair_and_report(folder)
        return
    folders(Path(results))  # UserError if it cannot be read: then no run would be found either
    unfinished = list(left_unfinished(Path(results)))
    if not unfinished:
        click.echo(f"{results}: no run is left unfinished", err=True)
    if not repair_all(unfinished, err=False):
        raise SystemExit(1)


@command.command()
@click.argument("name", shell_complete=_names)
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write it here, for a repository or a cache.  [default: DIR/baselines/NAME.json]",
)
@results_option
def baseline(name: str, output: Path | None, results: str) -> None:
    """Keep a comparison as a baseline, against which later ones are held: exchange compare --against NAME.

    Example: exchange results baseline first
    """
    from exchange.words import printable
    from exchange_simulation.cli.results.kinds import find
    from exchange_simulation.gates.baselines import keep_baseline

    folder, _ = find(Path(results), name)
    file = keep_baseline(Path(results), folder, output)
    against = folder.name if output is None else str(file)
    click.echo(
        printable(f"{file}: exchange compare --against {against} --fail-if-slower 10% holds later figures to it")
    )


@command.command()
@click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=_names)
@click.option("--prometheus", is_flag=True, help="As the text that Prometheus scrapes.")
@click.option(
    "--format",
    "file_format",
    type=OneOf(("hftbacktest",)),
    help="As order latency data of NAME for backtests, an .npz.",
)
@click.option("--last", type=click.IntRange(min=1), metavar="N", help="Without NAME: only the N newest runs.")
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write a file, which appears whole, as node_exporter's textfile collector wants it.",
)
@results_option
def export(
    names: tuple[str, ...],
    prometheus: bool,
    file_format: str | None,
    last: int | None,
    output: Path | None,
    results: str,
) -> None:
    """Print the figures of runs and comparisons for another tool, or write a run's order latencies for backtests.

    Example: exchange results export --prometheus --last 10

    \b
    exchange results export first --format hftbacktest --output latency.npz
    """
    if file_format is not None:
        if prometheus:
            raise click.UsageError("--prometheus and --format are two forms: give one of them")
        if len(names) != 1 or last is not None:
            raise click.UsageError(f"--format {file_format} is of one run: give its NAME")
        _export_order_latencies(Path(results), names[0], output)
        return
    from exchange_simulation.cli.results.kinds import find
    from exchange_simulation.cli.results.metrics_of_folders import metrics_text, newest_folders
    from exchange_simulation.launching.files import write_whole

    if not prometheus:
        raise click.UsageError("say in which form: --prometheus, or --format hftbacktest")
    if names and last is not None:
        raise click.UsageError("--last is of all runs, and NAME is of one: give one of them")
    chosen = [find(Path(results), name) for name in names] or newest_folders(Path(results), last)
    text = metrics_text(chosen)
    if output is None:
        click.echo(text, nl=False)
    else:
        write_whole(output, text.encode())


def _export_order_latencies(results: Path, name: str, output: Path | None) -> None:
    """Write the request, exchange and response times of a run's sampled orders. UserError if it has none."""
    from exchange.words import counted, printable
    from exchange_simulation.cli.results.kinds import find
    from exchange_simulation.reports.run.hftbacktest import order_latencies, write_order_latencies

    folder, kind = find(results, name)
    if kind.name != "run":
        raise UserError(f"{folder} is a {kind.name}: give one of its runs, as {name}/RUN")
    is_market = "gateways" in kind.read(folder)
    if is_market:
        raise UserError(
            f"{folder} has several gateways or engines, and an engine reports its times by its own count of orders, "
            "which is not the number of an order at its gateway: export a run of one gateway and one engine, or of "
            "--pairs"
        )
    latencies = order_latencies(folder)
    if len(latencies.rows) == 0:
        raise UserError(
            f"{folder}: none of its {counted(latencies.sampled, 'sampled orders')} has a request, an exchange and a "
            f"response time in this order: run again with --sampling-interval 100, say, on one host"
        )
    path = output if output is not None else Path(f"{folder.name}.npz")
    write_order_latencies(latencies, path)
    orders = counted(len(latencies.rows), "orders")
    click.echo(f"{printable(str(path))}: {orders} of the {latencies.sampled:,} that were sampled")
    if latencies.without_exchange_time:
        click.echo(f"left out  {latencies.without_exchange_time:,} that the engine answered with a later sampled order")
    if latencies.out_of_order:
        click.echo(f"left out  {latencies.out_of_order:,} whose times do not follow each other")


@command.command()
@click.argument("name", shell_complete=_names)
@results_option
@click.option("--name", "new_name", metavar="NEW", help="The new folder in DIR.  [default: as for the first one]")
@click.option(
    "--spark/--no-spark",
    "with_spark",
    default=None,
    help="Use Spark, or do not.  [default: as the command did: not for a run]",
)
@json_option
def rerun(name: str, results: str, new_name: str | None, with_spark: bool | None, as_json: bool) -> None:
    """Measure again, with a run's settings or a trial's plan.

    Example: exchange results rerun first --name second
    """
    from exchange_simulation.cli.results.kinds import find

    folder, kind = find(Path(results), name)
    raise SystemExit(kind.rerun(folder, results, new_name, with_spark=with_spark, as_json=as_json))
