"""Options that would change nothing where they stand. Each is refused with a sentence, so that nobody waits for it.

A mode is an option that makes another command of its command: beside `faults --list` the transports mean nothing. A
need is a condition without which an option means nothing: `--rate` of a simulation without events. The needs of a
run's settings, which Python has too, are in launching/idle_settings.py. `--dry-run` is no mode: a user adds it to the
command that is about to be started, so it takes every option of that command.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import click
from click.core import ParameterSource

Parameters = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Mode:
    """An option beside which most others change nothing."""

    parameter: str
    words: str
    """What the command does in this mode, after "which"."""
    kept: frozenset[str] | None = None
    """The parameters that still change something; None if `idle` names those that do not."""
    idle: frozenset[str] = frozenset()

    def is_idle(self, parameter: str) -> bool:
        """Return True if the parameter changes nothing in this mode."""
        if parameter == self.parameter:
            return False
        if self.kept is None:
            return parameter in self.idle
        return parameter not in self.kept


@dataclass(frozen=True, kw_only=True)
class Need:
    """A condition that an option needs to change anything. It is checked if a user typed the option."""

    parameter: str
    is_met: Callable[[Parameters], bool]
    words: str
    """The sentence after the option's name."""


MODES: dict[str, tuple[Mode, ...]] = {
    "faults": (Mode(parameter="listing", words="lists the faults and runs nothing", kept=frozenset()),),
    "sweep": (Mode(parameter="example", words="prints a file to start from", kept=frozenset()),),
    "bench supply-chain": (
        Mode(
            parameter="plan",
            words="prints what will flow and measures nothing",
            kept=frozenset(
                {"topology", "base", "interactions", "config", "agents", "transport", "duration_s", "restart_after_s"}
            ),
        ),
    ),
}
"""By the words that call a command, or by those of its group: the options that make another command of it."""


def _has_rate(parameters: Parameters) -> bool:
    return any(rate is not None for rate in parameters["rates"])


def _has_rate_over_time(parameters: Parameters) -> bool:
    return any(isinstance(rate, str) for rate in parameters["rates"])


def _has_events(parameters: Parameters) -> bool:
    return bool(parameters["events"] or parameters["trades"] or parameters["quotes"])


def _asks_for_all_events(parameters: Parameters) -> bool:
    return bool(parameters["events"])


NEEDS: dict[str, tuple[Need, ...]] = {
    "simulate": (
        Need(
            parameter="orders_per_s",
            is_met=_has_events,
            words="is for the times of events: give --events, --trades or --quotes too",
        ),
        Need(
            parameter="trades",
            is_met=lambda parameters: not _asks_for_all_events(parameters),
            words="is part of --events: leave it out",
        ),
        Need(
            parameter="quotes",
            is_met=lambda parameters: not _asks_for_all_events(parameters),
            words="is part of --events: leave it out",
        ),
    ),
    "bench request-reply": (
        Need(
            parameter="sample_s",
            is_met=lambda parameters: not _has_rate_over_time(parameters),
            words="is for one rate, or none: replies are counted as long as a load over time lasts",
        ),
    ),
    "tape": (
        Need(
            parameter="max_price",
            is_met=lambda parameters: parameters["price_model"] == "wide",
            words="bounds the prices of --price-model wide alone: give --prices instead",
        ),
        Need(
            parameter="arrivals",
            is_met=lambda parameters: parameters["orders_per_s"] is not None,
            words="says when orders are due, which only a tape with a --rate does: give one",
        ),
    ),
}
"""By the words that call a command: conditions without which an option changes nothing."""
NEEDS_OF_BENCHMARKS = (
    Need(
        parameter="seconds",
        is_met=_has_rate,
        words="is how long messages are offered at a rate: give a --rate too, or a --count",
    ),
)
"""Conditions of every benchmark that has the option."""
NEEDS_OF_HOSTS = (
    Need(
        parameter="insecure",
        is_met=lambda parameters: parameters["hosts"] is not None,
        words="is for roles on several hosts: give --hosts too",
    ),
)
"""Conditions of every benchmark, and of the suite."""


def refuse_idle_options(ctx: click.Context) -> None:
    """Raise UsageError, naming the option, if the user typed an option that changes nothing."""
    typed = [param for param in ctx.command.get_params(ctx) if _was_typed(ctx, param)]
    names = {param.name for param in typed}
    if {"quiet", "verbose"} <= names:
        raise click.UsageError("--quiet and --verbose contradict each other: give one of them")
    words = words_of(ctx)
    for mode in modes_of(words):
        if not ctx.params.get(mode.parameter):
            continue
        for param in typed:
            if mode.is_idle(str(param.name)):
                option = _option_of(ctx, mode.parameter)
                raise click.UsageError(f"{_name_of(param)} changes nothing beside {option}, which {mode.words}")
    for need in needs_of(words, ctx.command):
        if need.parameter in names and not need.is_met(ctx.params):
            raise click.UsageError(f"{_option_of(ctx, need.parameter)} {need.words}")


def words_of(ctx: click.Context) -> tuple[str, ...]:
    """Return the words that call the context's command, after `exchange`. For example: bench, supply-chain"""
    words: list[str] = []
    while ctx.parent is not None:
        words.insert(0, ctx.info_name or "")
        ctx = ctx.parent
    return tuple(words)


def modes_of(words: tuple[str, ...]) -> tuple[Mode, ...]:
    """Return the modes of the command that these words call: its own, or those of its group."""
    group = words[0] if words else ""
    return MODES.get(" ".join(words)) or MODES.get(group, ())


def needs_of(words: tuple[str, ...], command: click.Command) -> tuple[Need, ...]:
    """Return the needs of the options of the command that these words call."""
    parameters = {param.name for param in command.params}
    is_benchmark = {"seconds", "rates", "quick"} <= parameters
    needs = list(NEEDS.get(" ".join(words), ()))
    if is_benchmark:
        needs += NEEDS_OF_BENCHMARKS
    if words[:1] == ("bench",) and "hosts" in parameters:
        needs += NEEDS_OF_HOSTS
    return tuple(needs)


def _was_typed(ctx: click.Context, param: click.Parameter) -> bool:
    return ctx.get_parameter_source(str(param.name)) is ParameterSource.COMMANDLINE


def _option_of(ctx: click.Context, parameter: str) -> str:
    """Return the name of the parameter's option."""
    (param,) = [param for param in ctx.command.get_params(ctx) if param.name == parameter]
    return _name_of(param)


def _name_of(param: click.Parameter) -> str:
    """Return the long name of an option, or the name of an argument."""
    long_names = [name for name in param.opts if name.startswith("--")]
    return long_names[0] if long_names else param.human_readable_name


class CheckedCommand(click.Command):
    """A command that refuses options that would change nothing."""

    def invoke(self, ctx: click.Context) -> Any:
        refuse_idle_options(ctx)
        return super().invoke(ctx)
