"""`exchange run`: one run of the whole exchange, from random orders to a record, a table and a page."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import click

from exchange.instances import role_of
from exchange.settings import RunSettings
from exchange.words import printable
from exchange_simulation.cli.command import Command
from exchange_simulation.cli.gate_options import GateFiles, report_options, slo_option
from exchange_simulation.launching.errors import UserError, left_out
from exchange_simulation.launching.idle_settings import refuse_idle_settings
from exchange_simulation.launching.notices import prints_one_line
from exchange_simulation.launching.options import json_option, options_of, spark_option
from exchange_simulation.launching.typed_settings import run_settings, was_typed, without_default_rate

if TYPE_CHECKING:
    from exchange_simulation.gates.gate_report import GateReport
    from exchange_simulation.launching.launch.watch import OnSecond
    from exchange_simulation.launching.run import MeasuredRun


@click.command(cls=Command)
@options_of("run")
@click.option("--name", help="The run's folder in DIR.  [default: time, transport, rate]")
@spark_option
@click.option("--no-page", is_flag=True, help="Leave out the page; `exchange report` makes it later.")
@click.option(
    "--events", is_flag=True, help="Orders, trades, confirmations and quotes as tables, in RUN/events/; with --record."
)
@slo_option
@report_options
@click.option("--live", is_flag=True, help="Show the last minute as graphs in the terminal while the run goes on.")
@click.option(
    "--live-spark",
    is_flag=True,
    help="Show each second as a row of a table that Spark makes while the run goes on.",
)
@json_option
def command(
    results: str,
    name: str | None,
    with_spark: bool,
    no_page: bool,
    events: bool,
    slo: tuple[str, ...],
    junit: Path | None,
    markdown: Path | None,
    live: bool,
    live_spark: bool,
    as_json: bool,
    **given: Any,
) -> None:
    """Run the exchange once: gateway, matching engine and stats reporter over one transport.

    Example: exchange run --transport zeromq --rate 8000 --orders 80000

    \b
    exchange run --transport amqp --delivery confirmed    # through a private RabbitMQ
    exchange run --sampling-interval 100 --spark          # Spark's table of the sampled completion times
    exchange run --rate max --orders 2M                   # as fast as it goes
    exchange run --rate 8k --arrivals poisson --live      # watched while it goes on
    exchange run --slo "p99 <= 1ms" --junit gate.xml      # exit code 3 if p99 is above
    """
    _refuse_two_views(live, live_spark, as_json)
    if live_spark and not with_spark and was_typed("with_spark"):
        raise click.UsageError("--live-spark is a table that Spark makes, and --no-spark leaves Spark out: give one")
    settings = run_settings(**without_default_rate(given))
    refuse_idle_settings({field for field in given if was_typed(field)}, [settings])
    _refuse_idle_seed(settings)
    if live_spark and settings.hosts is not None:
        _refuse_reporters_elsewhere(settings)
    if events and not settings.record:
        raise click.UsageError("--events needs the streams of orders and answers: give --record too")
    if events and settings.opening is not None:
        raise click.UsageError("--events has no tables of orders from before the run: leave --events or --opening out")
    gate = _gate(slo, settings, GateFiles(junit, markdown))
    exit_code = run(
        settings,
        results,
        name,
        with_spark=with_spark,
        with_page=not no_page,
        as_json=as_json,
        with_events=events,
        live=live,
        live_spark=live_spark,
        gate=gate,
    )
    raise SystemExit(exit_code)


def _refuse_idle_seed(settings: RunSettings) -> None:
    """UsageError for a seed that changes nothing: a tape has its own orders, and only Poisson arrivals are random."""
    if settings.tape is not None and was_typed("seed") and settings.arriving.kind != "poisson":
        raise click.UsageError(
            f"--seed is {settings.seed}, but it changes nothing: the orders are those of {settings.tape}, and no "
            f"arrivals are random; leave --seed out, or take --arrivals poisson with a --rate"
        )


def _refuse_reporters_elsewhere(settings: RunSettings) -> None:
    """UsageError if a reporter is on another host: a view beside the run could not read its spool."""
    from exchange_simulation.launching.hosts.checks import checked_hosts
    from exchange_simulation.launching.lineup import Lineup

    file = checked_hosts(settings)
    for name in Lineup.of(settings).names:
        host = file.entry_of(name).host
        if role_of(name) == "reporter" and not host.is_here:
            raise click.UsageError(
                f"--live-spark reads the spool of the {name} while the run goes on, and that is on {host.name}: leave "
                f"--live-spark out, or run the {name} on this host"
            )


class Gate(Protocol):
    """Judges a run's record, in this folder."""

    def __call__(self, folder: Path, record: dict[str, Any], as_json: bool) -> GateReport: ...


def _gate(slo: tuple[str, ...], settings: RunSettings, files: GateFiles) -> Gate | None:
    """Return a function that judges the run by its bounds; None if nobody asked. UserError for a wrong bound."""
    if not slo and files == GateFiles():
        return None
    from exchange_simulation.gates.objectives import objectives_of, run_report
    from exchange_simulation.reports.gate_outcomes import write_outcomes
    from exchange_simulation.reports.gate_sentences import show_gate
    from exchange_simulation.reports.run.terminal import headline

    objectives = objectives_of(slo, settings)

    def judged(folder: Path, record: dict[str, Any], as_json: bool) -> GateReport:
        report = run_report(str(folder), record, headline(record), objectives)
        show_gate(report, to_stderr=as_json)
        write_outcomes(folder, report)
        files.write(report)
        return report

    return judged


def _refuse_two_views(live: bool, live_spark: bool, as_json: bool) -> None:
    """UsageError for two options that show the run in different ways; the error names both."""
    if live and live_spark:
        raise click.UsageError("--live and --live-spark both draw in the terminal: give one of them")
    if live and as_json:
        raise click.UsageError("--live draws for a person, and --json prints for a program: give one of them")
    if live_spark and as_json:
        raise click.UsageError("--live-spark draws for a person, and --json prints for a program: give one of them")


def run(
    settings: RunSettings,
    results: str,
    name: str | None,
    with_spark: bool,
    with_page: bool,
    as_json: bool,
    with_events: bool = False,
    live: bool = False,
    live_spark: bool = False,
    gate: Gate | None = None,
) -> int:
    """Run once into a new folder of `results`; show the outcome, and write its page. Then Spark makes tables, if asked.

    Returns the run's exit code, or that of the gate if the run is whole and fails a bound. UserError if the run could
    not start.
    """
    from exchange_simulation.launching.files import new_run_folder, run_name
    from exchange_simulation.launching.interrupts import interruption_noted
    from exchange_simulation.launching.record.begun import left_unfinished
    from exchange_simulation.launching.record.record import exit_code
    from exchange_simulation.launching.run import NotRecorded, measured_run

    check(settings)
    progress_of = _progress_view(settings, live, live_spark)
    with interruption_noted() as interruption:
        folder = new_run_folder(Path(results), name or run_name(settings))
        unfinished = list(left_unfinished(Path(results)))
        if unfinished:
            from exchange_simulation.cli.results.rerun import repair_all

            repair_all(unfinished)
        try:
            measured = measured_run(folder, settings, progress_of(folder))
        except NotRecorded as error:
            _show(folder, error.measured, as_json)
            raise
        _show(folder, measured, as_json)
        report = gate(folder, measured.record, as_json) if gate else None
        if with_events:
            with left_out("events"):
                _write_events(folder, as_json)
        _show_place(folder, measured, with_page, as_json)
    if with_spark and not interruption.came:
        with left_out("tables"):
            _make_tables(folder, measured.record, as_json)
    code_of_run = exit_code(measured.record)
    return report.exit_code(code_of_run) if report else code_of_run


def _show_place(folder: Path, measured: MeasuredRun, with_page: bool, as_json: bool) -> None:
    """Write the page and print its path; without a page print the folder, and how to get pages if none can be drawn."""
    from exchange_simulation.reports.report import page_unless_missing, place_line

    line = f"results: {printable(str(folder))}"
    if with_page:
        line = place_line(folder, page_unless_missing(lambda: _write_page(folder, measured)))
    if not prints_one_line():
        click.echo(line, err=as_json)


def _write_page(folder: Path, measured: MeasuredRun) -> Path:
    """Write the page, and return its path."""
    # Imported after the run, since the import takes half a second.
    from exchange_simulation.reports.run.page import write_page
    from exchange_simulation.reports.run.run_folder import read_run_folder

    return write_page(folder, read_run_folder(folder, measured.spool))


def check(settings: RunSettings) -> None:
    """Raise UserError if the run could not start, or would leave nothing to analyse. Warn of settings seldom meant."""
    from exchange_simulation.launching.hosts.checks import check_hosts
    from exchange_simulation.launching.setting_warnings import warn_of_rejections, warn_of_spinning
    from exchange_simulation.launching.transport_checks import check_transport, check_warm_up

    check_warm_up(settings)
    warn_of_rejections(settings)
    warn_of_spinning(settings)
    check_transport(settings)
    check_hosts(settings)


def _progress_view(
    settings: RunSettings, live: bool, live_spark: bool
) -> Callable[[Path], AbstractContextManager[OnSecond]]:
    """Return a function that makes the progress bar, or a live view, for the run's folder.

    UserError if a live view is asked for and there is no terminal.
    """
    if live_spark:
        from exchange_simulation.experiments.pipeline.live_beside_run import spark_beside

        return partial(spark_beside, settings)
    if live:
        from exchange_simulation.reports.live.window import live_window, terminal

        return partial(live_window, settings, terminal())
    from exchange_simulation.reports.progress import progress_bar

    return lambda _: progress_bar(settings)


def _show(folder: Path, measured: MeasuredRun, as_json: bool) -> None:
    """Print the record and its seconds as tables; or, as JSON, run.json to stdout and the reasons to stderr."""
    record = measured.record
    if not as_json and prints_one_line():
        from exchange_simulation.launching.record.noise_summary import noise_banner
        from exchange_simulation.reports.report import outcome_line
        from exchange_simulation.reports.run.terminal import headline

        doubts = [*record["reasons"], noise_banner(record, "runs")]
        click.echo(outcome_line(headline(record), "; ".join(doubt for doubt in doubts if doubt)))
        return
    if not as_json:
        from exchange_simulation.reports.run.minutes import show_minutes
        from exchange_simulation.reports.run.run_folder import read_run_folder
        from exchange_simulation.reports.run.seconds_tables import show_seconds
        from exchange_simulation.reports.run.terminal import show_record

        show_record(record)
        content = read_run_folder(folder, measured.spool)
        show_seconds(content)
        show_minutes(content)
        return
    from exchange_simulation.reports.exports import print_json

    for reason in record["reasons"]:
        click.echo(f"{record['status']}: {reason}", err=True)
    print_json(record)


def _make_tables(folder: Path, record: dict[str, Any], quiet: bool) -> None:
    """Let Spark make its tables, but not of a partial run, and show what it made of the sampled orders.

    A failure is printed and does not change the exit code.
    """
    if record["status"] == "partial":
        click.echo(printable(f"no tables of a partial run; make them with: exchange report {folder} --spark"), err=True)
        return
    from exchange_simulation.launching.interrupts import ended_as_by_ctrl_c
    from exchange_simulation.reports.run.spark_tables import make_tables

    with ended_as_by_ctrl_c() as interruption:
        if make_tables(folder, quiet) and not quiet:
            from exchange_simulation.reports.run.samples_table import show_samples

            show_samples(folder, record)
        interruption.forget()


def _write_events(folder: Path, quiet: bool) -> None:
    """Write the events of the recorded streams. A failure is printed and does not change the exit code."""
    from exchange_simulation.experiments.pipeline.events import write_events

    try:
        click.echo(printable(f"events: {write_events(folder)}"), err=quiet)
    except UserError as error:
        click.echo(f"no events: {error.message}", err=True)
