"""What the user asked for, with what `--quick` asks for where he did not say it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click
from click.core import ParameterSource

from messaging.benchmark import Asked, Benchmark

QUICK_REPEATS = 3


def asked_of(benchmark: Benchmark, given: dict[str, Any]) -> Asked:
    """UsageError where a transport is named twice, or none is."""
    transports = given["transport"]
    if not transports or len(set(transports)) < len(transports):
        raise click.UsageError("--transport needs one or more, each once, as amqp,zeromq")
    return given | quickly(benchmark.quick) if given["quick"] else given


def quickly(instead: Mapping[str, Any]) -> dict[str, Any]:
    """What a quick run has where the user does not say it."""
    return {name: value for name, value in {"repeats": QUICK_REPEATS, **instead}.items() if not was_typed(name)}


def was_typed(name: str) -> bool:
    context = click.get_current_context(silent=True)
    return context is not None and context.get_parameter_source(name) is ParameterSource.COMMANDLINE
