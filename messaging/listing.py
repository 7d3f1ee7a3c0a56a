"""`exchange bench`: a line for each benchmark, with its paper."""

from __future__ import annotations

import click

from messaging.catalogue import benchmark_of, names


def show() -> None:
    found = [benchmark_of(name) for name in names()]
    width = max(len(benchmark.name) for benchmark in found)
    for benchmark in found:
        click.echo(f"{benchmark.name:<{width}}  {benchmark.about}  [{benchmark.paper}]")
