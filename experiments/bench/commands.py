"""`exchange bench NAME`, made of what a benchmark declares; and `exchange bench suite`."""

from __future__ import annotations

from typing import Any

import click

from experiments.bench.benchmark import Benchmark
from experiments.bench.options import Seconds
from experiments.options import broker_options, json_option, results_option
from experiments.trial_options import Listed

timeout_option = click.option(
    "--timeout", "timeout_s", type=Seconds(0.1, 3600), default=10.0, show_default=True,
    help="How long nothing may come, seconds.",
)  # fmt: skip


def command_of(benchmark: Benchmark) -> click.Command:
    def run(results: str, name: str | None, as_json: bool, **given: Any) -> None:
        from experiments.bench.asking import asked_of
        from experiments.bench.running import bench

        raise SystemExit(bench(benchmark, asked_of(benchmark, given), results, name, as_json))

    run.__doc__ = (
        f"{benchmark.about[0].upper()}{benchmark.about[1:]}.\n\nExample: exchange bench {benchmark.name} --quick"
    )
    made = click.command(benchmark.name, short_help=benchmark.about)(_common(run, benchmark.repeats))
    made.params = [_transports(benchmark.transports), *benchmark.options, *made.params]
    return made


def suite_command() -> click.Command:
    def run(results: str, name: str | None, as_json: bool, **given: Any) -> None:
        """All benchmarks with their defaults: one record, one page.

        Example: exchange bench suite --quick
        """
        from experiments.bench.suite import suite

        raise SystemExit(suite(given, results, name, as_json))

    made = click.command("suite", short_help="all of them, one page")(_common(run, None))
    made.params = [_transports(None), *made.params]
    return made


def _transports(default: str | None) -> click.Option:
    return click.Option(["--transport"], type=Listed(click.STRING), default=default, show_default=default is not None,
                        metavar="SCHEME[,...]", help="Over what, each once.")  # fmt: skip


def _common(run: Any, repeats: int | None) -> Any:
    for option in reversed((
        click.option("--repeats", type=click.IntRange(1, 10_000), default=repeats,
                     show_default=repeats is not None or "each benchmark's", help="How often each cell is measured."),
        click.option("--quick", is_flag=True, help="Fewer sizes and messages, three repeats: to see how it looks."),
        timeout_option,
        broker_options,
        results_option,
        click.option("--name", help="The folder in DIR.  [default: time and benchmark]"),
        json_option,
    )):  # fmt: skip
        run = option(run)
    return run
