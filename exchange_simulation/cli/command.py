"""Commands that measure: their options stand under headings, and have defaults from exchange.toml and EXCHANGE_*.

What is typed counts before the environment, the environment before the file's table of the command, as [run], and that
before the file's first lines, which are for every command.
"""

from __future__ import annotations

import importlib
import os
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from exchange_simulation.launching.errors import UserError
from exchange_simulation.launching.notices import heard_by, say, with_details
from exchange_simulation.launching.options import GROUPS

OTHERS = "Other options"
FILE, PREFIX = Path("exchange.toml"), "EXCHANGE_"
CONFIGURED = ("run", "compare", "sweep", "capacity", "nagle", "bench")


def _be_quiet(ctx: click.Context, _param: click.Parameter, is_set: bool) -> None:
    if is_set:
        ctx.with_resource(heard_by(lambda _: None))


def _be_verbose(ctx: click.Context, _param: click.Parameter, is_set: bool) -> None:
    if is_set:
        ctx.with_resource(with_details())


LOUDNESS = (
    click.Option(
        ["-q", "--quiet"],
        is_flag=True,
        expose_value=False,
        is_eager=True,
        callback=_be_quiet,
        help="Print only the outcome, and errors.",
    ),
    click.Option(
        ["-v", "--verbose"],
        is_flag=True,
        expose_value=False,
        is_eager=True,
        callback=_be_verbose,
        help="Print also how each component is started.",
    ),
)


class Command(click.Command):
    """A command whose options stand in groups and take defaults from a file and the environment."""

    table = ""
    """Its table in the file, if not its name's: all benchmarks share one."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        *own, help_option = super().get_params(ctx)
        return [*own, *LOUDNESS, help_option]

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        sources = _sources(_by_key(self), self.table or info_name or "")
        extra.setdefault("default_map", {name: value for _, defaults in sources for name, value in defaults.items()})
        context = super().make_context(info_name, args, parent, **extra)
        if used := configured(context):
            with context.scope(cleanup=False):
                say(_line(sources, used, _by_key(self)))
        return context

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        heading_of = {name: f"{heading} options" for heading, names in GROUPS.items() for name in names}
        rows: dict[str, list[tuple[str, str]]] = {heading: [] for heading in (*heading_of.values(), OTHERS)}
        for param in self.get_params(ctx):
            if isinstance(param, click.Option) and (record := param.get_help_record(ctx)):
                rows[heading_of.get(param.name or "", OTHERS)].append(record)
        for heading, records in rows.items():
            if records:
                with formatter.section(heading):
                    formatter.write_dl(records)


def configured(ctx: click.Context) -> dict[str, Any]:
    """The parameters whose values come from the file or the environment."""
    return {n: v for n, v in ctx.params.items() if ctx.get_parameter_source(n) is ParameterSource.DEFAULT_MAP}


def _by_key(command: click.Command) -> dict[str, str]:
    """Parameters by the names of their options: orders_per_s by rate."""
    options = (param for param in command.params if isinstance(param, click.Option))
    return {option.opts[0].removeprefix("--"): str(option.name) for option in options}


def _sources(keys: Mapping[str, str], command: str) -> list[tuple[str, dict[str, Any]]]:
    """(where, values by parameter), the one that counts most last. UserError for a key that no command has."""
    file = _read()
    tables = {name: value for name, value in file.items() if isinstance(value, dict)}
    for name in tables:
        if name not in CONFIGURED:
            raise _unknown(f"{FILE}: [{name}]", name, CONFIGURED)
    shared = {name: value for name, value in file.items() if name not in tables}
    known = keys.keys() if shared.keys() <= keys.keys() else {key for name in CONFIGURED for key in _keys_of(name)}
    _check(shared, known, str(FILE))
    own = tables.get(command, {})
    _check(own, _keys_of(command) if own else (), f"{FILE}, [{command}]")
    variables = {key: PREFIX + key.replace("-", "_").upper() for key in keys}
    environment = {key: os.environ[name] for key, name in variables.items() if os.environ.get(name)}
    return [
        (where, {keys[key]: value for key, value in found.items() if key in keys})
        for where, found in ((str(FILE), {**shared, **own}), ("the environment", environment))
    ]


def _read() -> dict[str, Any]:
    try:
        return tomllib.loads(FILE.read_text())
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise UserError(f"{FILE.absolute()} is no TOML that can be read: {error}") from error


def _check(found: Mapping[str, Any], known: Iterable[str], where: str) -> None:
    for key, value in found.items():
        if key not in known:
            raise _unknown(f"{where}: {key!r}", key, known)
        if not isinstance(value, str | int | float):
            raise UserError(f'{where}: {key} is {value!r}; write what one would type, as rate = "8k"')


def _unknown(what: str, name: str, known: Iterable[str]) -> UserError:
    from exchange_simulation.experiments.sweep.keys import nearest

    return UserError(f"{what} is not known{nearest(name, known)}")


def _keys_of(name: str) -> set[str]:
    """The keys of a command; those of all benchmarks for bench."""
    command: click.Command = importlib.import_module(f"exchange_simulation.cli.{name}").command
    if not isinstance(command, click.Group):
        return set(_by_key(command))
    context = click.Context(command)
    parts = (command.get_command(context, part) for part in command.list_commands(context))
    return {key for part in parts if isinstance(part, Command) for key in _by_key(part)}


def _line(sources: Iterable[tuple[str, dict[str, Any]]], used: Mapping[str, Any], keys: Mapping[str, str]) -> str:
    """exchange.toml: --rate 4000; the environment: --seed 7"""
    where_of = {name: (where, value) for where, values in sources for name, value in values.items() if name in used}
    option_of = {name: key for key, name in keys.items()}
    by_where: dict[str, list[str]] = {}
    for name, (where, value) in where_of.items():
        by_where.setdefault(where, []).append(f"--{option_of[name]} {value}")
    return "; ".join(f"from {where}: {', '.join(options)}" for where, options in by_where.items())
