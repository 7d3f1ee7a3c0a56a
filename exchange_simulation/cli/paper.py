"""`exchange paper NAME`: everything that one paper measures, by its rules and in its order, with its claims tested."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from exchange.words import printable
from exchange_simulation.cli.command import Command
from exchange_simulation.cli.idle_options import CheckedCommand
from exchange_simulation.cli.main import CommandGroup
from exchange_simulation.launching.option_table import NOTATIONS
from exchange_simulation.launching.option_types import Count, Listed, Scheme
from exchange_simulation.launching.options import json_option, results_option

if TYPE_CHECKING:
    from exchange_simulation.papers.extent import Extent
    from exchange_simulation.papers.measuring import MeasuredPaper
    from exchange_simulation.papers.paper import Paper


class Papers(CommandGroup):
    """Builds the command `exchange paper NAME` for each paper of papers/catalogue.py."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        from exchange_simulation.papers.catalogue import PAPERS

        return [*PAPERS, "list"]

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:  # noqa: ARG002
        from exchange_simulation.papers.catalogue import PAPERS

        if name == "list":
            return list_command
        if name not in PAPERS:
            return None
        return command_of(PAPERS[name])


class PaperCommand(Command):
    """A paper's command. It takes no defaults from exchange.toml: a paper is measured by its own rules."""

    table = "paper"


@click.group(cls=Papers)
def command() -> None:
    """The five papers: each by one command, by its own rules, its sentences put to the test.

    Example: exchange paper amqp --quick
    """


@click.command("list", cls=CheckedCommand, short_help="the papers, with the number of claims of each")
def list_command() -> None:
    """Print the papers. Their figures and tables, with the commands that make them: exchange bench coverage.

    Example: exchange paper list
    """
    from exchange_simulation.papers.listing import show_papers

    show_papers()


def command_of(paper: Paper) -> click.Command:
    """Return the command `exchange paper NAME`."""
    from exchange_simulation.experiments.trials.plan import MOST_REPEATS
    from exchange_simulation.papers.paper import REPEATS
    from exchange_simulation.repeats.judging import ALPHA
    from exchange_simulation.repeats.sign_flips import repeats_needed

    @click.option("--quick/--full", default=False, help="A few minutes; or the paper's own extent.  [default: full]")
    @click.option(
        "--repeats",
        type=Count(1, MOST_REPEATS),
        metavar="N",
        help=(
            "How often each cell is measured: once is enough for figures and tables, and a verdict on a sentence needs "
            f"{repeats_needed(ALPHA)}.  [default: {REPEATS}]"
        ),
    )
    @click.option(
        "--network",
        "networks",
        type=Listed(NOTATIONS["network"]),
        metavar="PROFILE[,...]",
        help="Measure on these networks, a line each, in place of the paper's: see exchange network list.",
    )
    @click.option(
        "--transport",
        "transports",
        type=Listed(Scheme()),
        metavar="SCHEME[,...]",
        help="Measure over these, too, a line each, beside the paper's own.",
    )
    @results_option
    @click.option("--name", help="The folder in DIR.  [default: time and paper]")
    @click.option("--resume", metavar="NAME", help="Go on with one that was interrupted.")
    @click.option("--dry-run", is_flag=True, help="Print the commands, and about how long each takes; run nothing.")
    @click.option(
        "--export",
        "export_to",
        type=click.Path(file_okay=False, path_type=Path),
        metavar="FOLDER",
        help="Write commands, claims, values, pictures and raw figures there, too.",
    )
    @json_option
    @click.pass_context
    def run(ctx: click.Context, /, **_: Any) -> None:
        raise SystemExit(_measure(ctx, paper))

    help_text = (
        f"{paper.title}: everything that it measures, by its own rules.\n\nExample: exchange paper {paper.name} --quick"
    )
    return click.command(paper.name, cls=PaperCommand, short_help=paper.title, help=help_text)(run)


def _measure(ctx: click.Context, paper: Paper) -> int:
    """Measure, or go on measuring, as the options say; show and export the outcome. Returns the exit code."""
    from exchange_simulation.papers.extent import Extent
    from exchange_simulation.papers.measuring import measure_paper, resume_paper

    given = ctx.params
    extent = Extent(
        quick=given["quick"],
        repeats=given["repeats"],
        networks=_checked_networks(given["networks"] or ()),
        transports=given["transports"] or (),
    )
    to_resume = None
    if given["resume"] is not None:
        from exchange_simulation.cli.results.kinds import find

        _refuse_beside_resume(ctx)
        to_resume, _ = find(Path(given["results"]), given["resume"])
    if given["dry_run"]:
        _show_plan(paper, extent, to_resume, given)
        return 0
    if to_resume is None:
        measured = measure_paper(paper, extent, results=given["results"], name=given["name"])
    else:
        measured = resume_paper(paper, to_resume)
    _show(measured, as_json=given["as_json"])
    if given["export_to"] is not None:
        from exchange_simulation.papers.exporting import export_paper

        target = export_paper(measured.folder, measured.record, given["export_to"])
        click.echo(printable(f"exported: {target}"), err=given["as_json"])
    return measured.exit_code


def _show_plan(paper: Paper, extent: Extent, to_resume: Path | None, given: Mapping[str, Any]) -> None:
    """Print what would be measured; of an interrupted measurement, what it lacks."""
    from exchange_simulation.launching.files import planned_place
    from exchange_simulation.launching.notices import prints_one_line
    from exchange_simulation.papers.measuring import parts_left
    from exchange_simulation.papers.planned import plan_lines, planned_parts, total_in_words
    from exchange_simulation.reports.exports import print_json

    if to_resume is None:
        place = planned_place(Path(given["results"]), given["name"])
        parts = planned_parts(paper, extent)
    else:
        place = printable(f"the results are in {to_resume}")
        parts = parts_left(paper, to_resume)
    if given["as_json"]:
        print_json([part.as_dict() for part in parts])
    elif prints_one_line():
        click.echo(total_in_words(parts))
    else:
        for line in plan_lines(parts, place):
            click.echo(line)


def _checked_networks(networks: Sequence[str]) -> Sequence[str]:
    """Return the networks. UserError if one is unknown, or there twice."""
    from exchange_simulation.experiments.comparison_arms import network_factor
    from exchange_simulation.launching.network.profile import parse

    for network in networks:
        parse(network)
    if networks:
        network_factor(networks)
    return networks


def _refuse_beside_resume(ctx: click.Context) -> None:
    """UsageError for options that would change a measurement that goes on."""
    options = {
        "quick": "--quick and --full",
        "repeats": "--repeats",
        "name": "--name",
        "networks": "--network",
        "transports": "--transport",
    }
    for name, option in options.items():
        if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise click.UsageError(f"--resume goes on as it was begun: leave out {option}")


def _show(measured: MeasuredPaper, *, as_json: bool) -> None:
    from exchange_simulation.launching.record.noise_summary import noise_banner
    from exchange_simulation.messaging.measurements import MEASUREMENTS
    from exchange_simulation.papers.page import PAGE
    from exchange_simulation.papers.sentences import headline
    from exchange_simulation.papers.terminal import show
    from exchange_simulation.reports.report import outcome_line, print_measured

    record = measured.record
    line = outcome_line(headline(record), noise_banner(record, MEASUREMENTS))
    print_measured(record, as_json, lambda: show(record), measured.folder / PAGE, line)
    if measured.is_interrupted:
        resume = f"exchange paper {record['paper']} --resume {measured.folder.name}"
        click.echo(printable(f"interrupted; what was measured is kept: {resume} goes on"), err=True)
