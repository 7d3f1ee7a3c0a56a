"""`exchange bench`: the messaging benchmarks of the papers. Each is a subcommand; `suite` runs all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from exchange_simulation.cli.command import Command
from exchange_simulation.cli.main import CommandGroup

if TYPE_CHECKING:
    from exchange_simulation.messaging.benchmark import BenchmarkDefinition


class BenchCommand(Command):
    """A benchmark's command; its defaults stand in the table [bench] of exchange.toml."""

    table = "bench"


class Benchmarks(CommandGroup):
    """Builds the command `exchange bench NAME` from the declarations in messaging/benchmarks/NAME.py."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        from exchange_simulation.messaging.benchmarks import names

        return [*names(), "suite", "coverage", "role"]

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        from exchange_simulation.messaging.benchmarks import benchmark_of

        if name not in self.list_commands(ctx):
            return None
        if name == "role":
            from exchange_simulation.messaging.by_hand import role_command

            return role_command()
        if name == "coverage":
            return coverage_command
        return command_of(None if name == "suite" else benchmark_of(name))


@click.group(cls=Benchmarks, invoke_without_command=True)
@click.pass_context
def command(ctx: click.Context) -> None:
    """The messaging benchmarks of the papers: alone, it lists them.

    Example: exchange bench de-spsc --transport amqp,zeromq --sizes 1B..1MiB
    """
    if ctx.invoked_subcommand is None:
        from exchange_simulation.messaging.benchmarks import benchmark_of, names
        from exchange_simulation.reports.tables import key_column, plain_table, terminal, words_column

        table = plain_table(key_column(), words_column(), header=False)
        for benchmark in map(benchmark_of, names()):
            table.add_row(benchmark.name, f"{benchmark.about}  [{benchmark.paper}]")
        terminal().print(table)


def command_of(benchmark: BenchmarkDefinition | None) -> click.Command:
    """The command `exchange bench NAME`; for None the command `exchange bench suite`."""
    from exchange_simulation.messaging.options import parameters

    def run(results: str, name: str | None, as_json: bool, **typed: Any) -> None:
        from exchange_simulation.messaging.options import settings_of
        from exchange_simulation.messaging.running import BenchmarkOutput, run_benchmark, run_suite

        output = BenchmarkOutput(results, name, as_json)
        if benchmark is None:
            raise SystemExit(run_suite(typed, output))
        settings = settings_of(benchmark, typed)
        if not benchmark.run_without_measuring(settings):
            raise SystemExit(run_benchmark(benchmark, settings, output))

    if benchmark is None:
        name = "suite"
        first_sentence = "All benchmarks with their defaults: one record, one page"
        short_help = "all of them, one page"
    else:
        name = benchmark.name
        first_sentence = benchmark.about[0].upper() + benchmark.about[1:]
        short_help = benchmark.about
    return BenchCommand(
        name,
        callback=run,
        params=parameters(benchmark),
        help=f"{first_sentence}.\n\nExample: exchange bench {name} --quick",
        short_help=short_help,
    )


@click.command("coverage", short_help="each figure of the papers, and its command")
def coverage_command() -> None:
    """Each figure, table and experiment of the papers, and the command that makes it, or why none does.

    Example: exchange bench coverage
    """
    from exchange_simulation.papers.listing import show_coverage

    show_coverage()
