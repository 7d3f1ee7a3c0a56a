"""`exchange bench NAME`, made of what a benchmark declares; and `exchange bench suite`."""

from __future__ import annotations

from typing import Any

import click

from messaging.benchmark import Benchmark
from messaging.options import parameters


def command_of(benchmark: Benchmark) -> click.Command:
    def run(results: str, name: str | None, as_json: bool, **given: Any) -> None:
        from messaging.asking import asked_of
        from messaging.running import bench

        raise SystemExit(bench(benchmark, asked_of(benchmark, given), results, name, as_json))

    about = f"{benchmark.about[0].upper()}{benchmark.about[1:]}."
    return click.Command(
        benchmark.name,
        callback=run,
        params=parameters(benchmark.transports, benchmark.options, benchmark.repeats),
        help=f"{about}\n\nExample: exchange bench {benchmark.name} --quick",
        short_help=benchmark.about,
    )


def suite_command() -> click.Command:
    def run(results: str, name: str | None, as_json: bool, **given: Any) -> None:
        from messaging.suite import suite

        raise SystemExit(suite(given, results, name, as_json))

    return click.Command(
        "suite",
        callback=run,
        params=parameters(None, (), None),
        help="All benchmarks with their defaults: one record, one page.\n\nExample: exchange bench suite --quick",
        short_help="all of them, one page",
    )
