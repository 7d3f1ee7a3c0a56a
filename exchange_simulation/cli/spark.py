"""`exchange spark`: tables and summaries of any number of runs, here or on a cluster."""

from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, cast

import click

from exchange_simulation.cli.main import CommandGroup
from exchange_simulation.launching.option_table import F
from exchange_simulation.launching.options import json_option, together

if TYPE_CHECKING:
    from exchange_simulation.experiments.pipeline.sql import Output, RowsOf

tables_option = click.option(
    "--tables", metavar="URL", help="Where the tables are: any file system that Spark reaches.  [default: in RESULTS]"
)
MASTERS = "Who does it: local[N], spark://HOST:PORT, yarn, k8s://..."
master_option = click.option("--master", default="local[2]", show_default=True, metavar="URL", help=MASTERS)
master_or_server_option = click.option(
    "--master",
    metavar="URL",
    help=f"{MASTERS}, or Spark Connect, sc://HOST:PORT.  [default: the tables' exchange spark server, else local[2]]",
)


def _settings(_context: click.Context, _option: click.Parameter, confs: tuple[str, ...]) -> dict[str, str]:
    """Spark's settings by name. BadParameter for words that are no setting of Spark, or that set the master."""
    settings = {}
    for conf in confs:
        name, equals, value = conf.partition("=")
        if not equals or not name.startswith("spark.") or name == "spark.master":
            raise click.BadParameter(f"it takes NAME=VALUE, as spark.driver.memory=2g, and is {conf!r}")
        settings[name] = value
    return settings


def session_options(command: F) -> F:
    """The options --conf and --packages; the command gets both as the session's `settings`."""

    @functools.wraps(command)
    def with_settings(settings: dict[str, str], packages: str | None, **given: Any) -> Any:
        if packages:
            settings = {**settings, "spark.jars.packages": packages}
        return command(settings=settings, **given)

    return together(
        [
            click.option(
                "--conf",
                "settings",
                multiple=True,
                metavar="NAME=VALUE",
                callback=_settings,
                help="A setting of Spark, over ours and those of spark-defaults.conf; may be given several times.",
            ),
            click.option(
                "--packages",
                metavar="GROUP:NAME:VERSION[,...]",
                help="Libraries of Spark's, from Maven, as of an object store.",
            ),
        ]
    )(cast(F, with_settings))


@click.group(cls=CommandGroup)
def command() -> None:
    """The data pipeline by itself: runs to tables, tables to summaries, here or on a cluster; runs that go on.

    Example: exchange spark ingest results; exchange spark summary results
    """


@command.command()
@click.argument("results", type=click.Path(path_type=Path))
@tables_option
@click.option("--again", is_flag=True, help="Also runs that are in the tables already.")
@click.option("--events", is_flag=True, help="Also orders, trades, confirmations, quotes of runs with --record.")
@session_options
def ingest(results: Path, tables: str | None, again: bool, events: bool, settings: dict[str, str]) -> None:
    """Put the finished runs below RESULTS into tables, with a folder for each experiment.

    Example: exchange spark ingest results --events
    """
    from exchange_simulation.experiments.pipeline.jobs import ingest

    raise SystemExit(ingest(results, tables, again, events, settings))


@command.command()
@click.argument("results")
@master_or_server_option
@tables_option
@session_options
@json_option
def summary(results: str, master: str | None, tables: str | None, settings: dict[str, str], as_json: bool) -> None:
    """Summarize all runs in the tables: every second, every run, repeats together, arms side by side.

    Example: exchange spark summary results --master local[2]
    """
    from exchange_simulation.experiments.pipeline.jobs import summary

    raise SystemExit(summary(results, master, tables, as_json, settings))


UNITS_NS = {"us": 10**3, "ms": 10**6, "s": 10**9, "min": 60 * 10**9}
BAR_LENGTH = re.compile(r"([0-9]{1,8})\s*(us|ms|s|min)")
"""With at most eight digits, so that the nanoseconds fit into 64 bits."""


def _every_ns(_context: click.Context, _option: click.Parameter, text: str) -> int:
    """Return the nanoseconds of a time with its unit, as 1s or 100ms."""
    match = BAR_LENGTH.fullmatch(text)
    if not match or int(match[1]) == 0:
        raise click.BadParameter(
            f"{text!r} is no length of a bar: give a number of up to eight digits and a unit, as 1s, 100ms or 1min"
        )
    return int(match[1]) * UNITS_NS[match[2]]


output_options = together(
    [
        click.option(
            "--tables",
            default="results/tables",
            show_default=True,
            metavar="URL",
            help="Where exchange spark ingest made them.",
        ),
        master_or_server_option,
        session_options,
        click.option("--csv", "form", flag_value="csv", help="All rows on stdout, as CSV with a line of names."),
        click.option("--json", "form", flag_value="json", help="All rows on stdout, a JSON object a line."),
        click.option(
            "--parquet", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="All rows to FILE."
        ),
    ]
)


@command.command()
@click.argument("statement", required=False)
@click.option("--file", "-f", type=click.File(), metavar="FILE", help="The statement's file; - for stdin.")
@output_options
def sql(statement: str | None, file: TextIO | None, **asked: Any) -> None:
    """Answer a query over the tables of all runs, each by its name: completion, traffic, summary, arms, ...

    Example: exchange spark sql "select arm, due_p99_us from arms where transport = 'zeromq'"
    """
    if statement is None and file is None:
        raise click.UsageError("there is no statement: give one as an argument, or with --file")
    if statement is not None and file is not None:
        raise click.UsageError("--file and the argument are two statements: give one of them")
    output = _output(asked.pop("form"), asked.pop("parquet"))
    query = statement if file is None else file.read()
    from exchange_simulation.experiments.pipeline.sql import sql

    raise SystemExit(sql(str(query), output=output, **asked))


@command.command()
@click.option("--every", default="1s", show_default=True, callback=_every_ns, metavar="TIME", help="A bar's length.")
@output_options
def bars(every: int, **asked: Any) -> None:
    """Show prices over time, from the events of runs or simulations: open, high, low, close, volume, spread, depth.

    Example: exchange spark bars --every 1s
    """
    from spark.gold.views import bars_by_time

    _gold("bars_by_time", functools.partial(bars_by_time, every_ns=every), **asked)


@command.command()
@output_options
def samples(**asked: Any) -> None:
    """Show how far the sampled orders' completion times are from those of all orders, run by run.

    Example: exchange spark samples
    """
    from spark.gold.views import samples

    _gold("samples", samples, **asked)


def _gold(name: str, rows_of: RowsOf, *, form: str | None, parquet: Path | None, **asked: Any) -> None:
    """Show the rows of one of our own statements."""
    output = _output(form, parquet)
    from exchange_simulation.experiments.pipeline.sql import gold

    raise SystemExit(gold(name, rows_of, output=output, **asked))


def _output(form: str | None, parquet: Path | None) -> Output:
    """Return where the rows go. UsageError for two outputs."""
    if form and parquet:
        raise click.UsageError(f"--{form} and --parquet are two outputs: give one")
    from exchange_simulation.experiments.pipeline.sql import OUTPUTS, to_parquet

    return to_parquet(parquet) if parquet else OUTPUTS[form]


@command.command()
@click.argument("results", default="results", type=click.Path(path_type=Path))
@tables_option
@click.option("--stop", is_flag=True, help="End the server of these tables.")
@session_options
def server(results: Path, tables: str | None, stop: bool, settings: dict[str, str]) -> None:
    """Keep a Spark warm for the tables in RESULTS: sql, bars, samples and summary then start no JVM.

    The server ends with Ctrl-C, with --stop, or with the process that started it. Only you can use it.

    Example: exchange spark server results
    """
    from exchange_simulation.experiments.pipeline import server as servers

    if stop and settings:
        raise click.UsageError("--stop ends a server, and takes no settings of Spark: leave out --conf and --packages")
    raise SystemExit(servers.stop(results, tables) if stop else servers.serve(results, tables, settings))


@command.command()
@click.option("--again", is_flag=True, help="Also where it was done already.")
def prepare(again: bool) -> None:
    """Make Spark start faster from now on: once, most of a minute, and 190 MB in your cache.

    Example: exchange spark prepare
    """
    from exchange_simulation.experiments.pipeline.jobs import prepare

    prepare(again)


@command.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@master_option
@click.option(
    "--deploy-mode", type=click.Choice(["client", "cluster"]), help="Where the driver is, as spark-submit has it."
)
@session_options
@click.argument("job", type=click.Choice(["ingest", "summary", "simulate"]))
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def submit(
    master: str, deploy_mode: str | None, settings: dict[str, str], job: str, arguments: tuple[str, ...]
) -> None:
    """Hand JOB to spark-submit, with our packages; what follows JOB are its own arguments.

    Example: exchange spark submit --master local[2] summary results
    """
    from exchange_simulation.experiments.pipeline.jobs import submit

    raise SystemExit(submit(master, deploy_mode, settings, job, arguments))


@command.command()
@click.argument("results", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--once", is_flag=True, help="Take what is there now, and end.")
@click.option("--launched", is_flag=True, hidden=True, help="Speak to a launcher, in events.")
@session_options
def live(results: Path, once: bool, launched: bool, settings: dict[str, str]) -> None:
    """Follow a run, or all runs of a folder, second by second; also after the fact.

    RESULTS is a run's folder, or one that holds runs or trials. Their rows are in the table `live`.

    Example: exchange spark live results
    """
    from exchange_simulation.experiments.pipeline.live import follow

    raise SystemExit(follow(results, once, launched, settings))
