"""What the user asked for, with what `--quick` asks for where he did not say it."""

from __future__ import annotations

from typing import Any

import click
from click.core import ParameterSource

from experiments.bench.benchmark import Asked, Benchmark

QUICK_REPEATS = 3


def asked_of(benchmark: Benchmark, given: dict[str, Any]) -> Asked:
    """UsageError where a transport is named twice, or none is."""
    transports = given["transport"]
    if not transports or len(set(transports)) < len(transports):
        raise click.UsageError("--transport needs one or more, each once, as amqp,zeromq")
    if not given["quick"]:
        return given
    quick = {"repeats": QUICK_REPEATS, **benchmark.quick}
    return given | {name: value for name, value in quick.items() if not _was_typed(name)}


def _was_typed(name: str) -> bool:
    context = click.get_current_context(silent=True)
    return context is not None and context.get_parameter_source(name) is ParameterSource.COMMANDLINE
