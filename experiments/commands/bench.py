"""`exchange bench`: the messaging benchmarks of the papers, one subcommand each."""

from __future__ import annotations

from typing import Any

import click

from experiments.options import broker_options, json_option, results_option
from experiments.trial_options import Listed


class Benchmarks(click.Group):
    """`exchange bench NAME` is made of what experiments/bench/benchmarks/NAME.py declares."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        from experiments.bench.catalogue import names

        return names()

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        return _command_of(name) if name in self.list_commands(ctx) else None


def _command_of(name: str) -> click.Command:
    from experiments.bench.catalogue import benchmark_of

    benchmark = benchmark_of(name)

    def run(results: str, name: str | None, as_json: bool, **given: Any) -> None:
        from experiments.bench.asking import asked_of
        from experiments.bench.running import bench

        raise SystemExit(bench(benchmark, asked_of(benchmark, given), results, name, as_json))

    run.__doc__ = f"{benchmark.about[0].upper()}{benchmark.about[1:]}.\n\nExample: exchange bench {name}"
    made = click.command(name, short_help=f"{benchmark.about}  [{benchmark.paper}]")(_common(run))
    made.params = [_transports(benchmark.transports), *benchmark.options, *made.params]
    return made


def _transports(default: str) -> click.Option:
    return click.Option(["--transport"], type=Listed(click.STRING), default=default, show_default=True,
                        metavar="SCHEME[,...]", help="Over what, each once.")  # fmt: skip


def _common(run: Any) -> Any:
    for option in reversed((
        click.option("--repeats", type=click.IntRange(1, 10_000), default=5, show_default=True,
                     help="How often each cell is measured."),
        click.option("--quick", is_flag=True, help="Fewer sizes and messages, three repeats: to see how it looks."),
        click.option("--timeout", "timeout_s", type=click.FloatRange(0.1, 3600), default=10.0, show_default=True,
                     help="How long nothing may come, seconds."),
        broker_options,
        results_option,
        click.option("--name", help="The folder in DIR.  [default: time and benchmark]"),
        json_option,
    )):  # fmt: skip
        run = option(run)
    return run


@click.group(cls=Benchmarks, invoke_without_command=True)
@click.pass_context
def command(ctx: click.Context) -> None:
    """The messaging benchmarks of the papers: alone, it lists them.

    Example: exchange bench de-spsc --transport amqp,zeromq --sizes 1B..1MiB
    """
    if ctx.invoked_subcommand is None:
        from experiments.bench.listing import show

        show()
