"""`exchange bench`: the messaging benchmarks of the papers. Each is a subcommand; `suite` runs all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from cli.command import Command
from cli.main import LoadingGroup

if TYPE_CHECKING:
    from messaging.benchmark import Benchmark


class BenchCommand(Command):
    table = "bench"


class Benchmarks(LoadingGroup):
    """Builds the command `exchange bench NAME` from the declarations in messaging/benchmarks/NAME.py."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        from messaging.benchmarks import names

        return [*names(), "suite", "coverage", "role"]

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        from cli.bench_role import role_command
        from messaging.benchmarks import benchmark_of

        if name not in self.list_commands(ctx):
            return None
        others = {"suite": suite_command, "coverage": coverage_command, "role": role_command}
        return others[name]() if name in others else command_of(benchmark_of(name))


@click.group(cls=Benchmarks, invoke_without_command=True)
@click.pass_context
def command(ctx: click.Context) -> None:
    """The messaging benchmarks of the papers: alone, it lists them.

    Example: exchange bench de-spsc --transport amqp,zeromq --sizes 1B..1MiB
    """
    if ctx.invoked_subcommand is None:
        from messaging.benchmarks import benchmark_of, names

        benchmarks = [benchmark_of(name) for name in names()]
        width = max(len(benchmark.name) for benchmark in benchmarks)
        for benchmark in benchmarks:
            click.echo(f"{benchmark.name:<{width}}  {benchmark.about}  [{benchmark.paper}]")


def command_of(benchmark: Benchmark) -> click.Command:
    """`exchange bench NAME`."""
    from messaging.options import parameters

    def run(results: str, name: str | None, as_json: bool, **typed: Any) -> None:
        from messaging.options import settings_of
        from messaging.running import Output, run_benchmark

        settings = settings_of(benchmark, typed)
        if not benchmark.instead(settings):
            raise SystemExit(run_benchmark(benchmark, settings, Output(results, name, as_json)))

    about = f"{benchmark.about[0].upper()}{benchmark.about[1:]}."
    return BenchCommand(
        benchmark.name,
        callback=run,
        params=parameters(benchmark),
        help=f"{about}\n\nExample: exchange bench {benchmark.name} --quick",
        short_help=benchmark.about,
    )


def suite_command() -> click.Command:
    """`exchange bench suite`."""
    from messaging.options import parameters

    def run(results: str, name: str | None, as_json: bool, **typed: Any) -> None:
        from messaging.running import Output, run_suite

        raise SystemExit(run_suite(typed, Output(results, name, as_json)))

    return BenchCommand(
        "suite",
        callback=run,
        params=parameters(None),
        help="All benchmarks with their defaults: one record, one page.\n\nExample: exchange bench suite --quick",
        short_help="all of them, one page",
    )


def coverage_command() -> click.Command:
    """`exchange bench coverage`."""

    def run() -> None:
        from messaging.report import show_coverage

        show_coverage()

    return click.Command(
        "coverage",
        callback=run,
        help="Each figure, table and experiment of the papers, and the command that makes it, or why none does."
        "\n\nExample: exchange bench coverage",
        short_help="each figure of the papers, and its command",
    )
