"""Commands that measure: their options stand under headings; those in CONFIGURED take defaults of the user's.

An option's value comes from the first of these that has it: the command line, the environment, the file's table of the
command (as [run]), the file's first lines, which are for every command.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import click
from click.core import ParameterSource

from exchange.settings import DECLARED
from exchange_simulation.cli.idle_options import CheckedCommand
from exchange_simulation.cli.standard_output import go_on_without_output
from exchange_simulation.launching.errors import UserError
from exchange_simulation.launching.notices import notices_to, say, with_details, with_one_line
from exchange_simulation.launching.toml_file import read_toml

HEADINGS: dict[str, tuple[str, ...]] = {
    "Load": (
        "bench",
        "sizes",
        "count",
        "rates",
        "seconds",
        "start_per_s",
        "numbers_of_gateways",
        "numbers_of_engines",
        "numbers_of_subscribers",
    ),
    "Transport": ("transports", "deliveries", "roles", "networks"),
    "Engine": (),
    "Measuring": (
        "file",
        "vary",
        "slo",
        "faults",
        "listing",
        "run_options",
        "quick",
        "repeats",
        "precision",
        "most_probes",
        "longest_s",
        "pause_s",
        "redo_noisy",
        "until_decided",
        "max_repeats",
        "fail_if",
        "against",
        "fail_if_slower",
        "live",
        "live_spark",
    ),
    "Output": (
        "events",
        "results",
        "name",
        "resume",
        "dry_run",
        "yes",
        "example",
        "with_spark",
        "no_spark",
        "no_page",
        "junit",
        "markdown",
        "as_json",
        "quiet",
        "verbose",
        "help",
    ),
}
"""Parameters by the heading under which a command's help has them. A setting's heading is in its declaration."""
OTHER_HEADING = "Other options"
FILE = Path("exchange.toml")
PREFIX = "EXCHANGE_"
"""The beginning of the environment variable of an option: EXCHANGE_RATE for --rate."""
ONLY_TYPED = {"hosts"}
"""Keys that the file of the current folder may not give: whoever wrote that file could have commands executed."""
CONFIGURED = ("run", "compare", "sweep", "capacity", "nagle", "bench", "faults")
"""The commands that take defaults from exchange.toml and EXCHANGE_*, each with a table of this name in the file."""


def _be_quiet(ctx: click.Context, _param: click.Parameter, is_set: bool) -> None:
    if is_set:
        ctx.with_resource(notices_to(lambda _: None))
        ctx.with_resource(with_one_line())


def _be_verbose(ctx: click.Context, _param: click.Parameter, is_set: bool) -> None:
    if is_set:
        ctx.with_resource(with_details())


OUTPUT_OPTIONS = (
    click.Option(
        ["-q", "--quiet"],
        is_flag=True,
        expose_value=False,
        is_eager=True,
        callback=_be_quiet,
        help="Print the outcome in one line, and errors.",
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


class Command(CheckedCommand):
    """A command whose options stand in groups. If CONFIGURED has it, they take defaults from file and environment."""

    table = ""
    """The command's table in the file; empty if it is the command's own name. All benchmarks share one table."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        *parameters, help_option = super().get_params(ctx)  # click appends --help
        return [*parameters, *OUTPUT_OPTIONS, help_option]

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        parameter_of = _parameters_by_key(self)
        name = self.table or info_name or ""
        sources = _sources(parameter_of, name) if name in CONFIGURED else []
        defaults: dict[str, Any] = {}
        for source in sources:
            defaults |= source.values
        for parameter in self.params:
            if isinstance(parameter, click.Option) and parameter.multiple and parameter.name in defaults:
                defaults[parameter.name] = [defaults[parameter.name]]  # a text would be taken apart into letters
        extra.setdefault("default_map", defaults)
        context = super().make_context(info_name, args, parent, **extra)
        used = configured_values(context)
        if used:
            with context.scope(cleanup=False):  # so that --quiet holds for this sentence, too
                say(_sentence_about_defaults(sources, used, parameter_of))
        return context

    def invoke(self, ctx: click.Context) -> Any:
        """Measure, also when nobody reads the output any more: a record is left."""
        go_on_without_output()
        return super().invoke(ctx)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows: dict[str, list[tuple[str, str]]] = {f"{heading} options": [] for heading in HEADINGS}
        rows[OTHER_HEADING] = []
        for param in self.get_params(ctx):
            row = param.get_help_record(ctx) if isinstance(param, click.Option) else None
            if row:
                rows[heading_of(param.name or "")].append(row)
        for heading, records in rows.items():
            if records:
                with formatter.section(heading):
                    formatter.write_dl(records)


def heading_of(parameter: str) -> str:
    """Return the heading under which the help has the parameter's option."""
    if parameter in DECLARED:
        return f"{DECLARED[parameter].heading} options"
    for heading, parameters in HEADINGS.items():
        if parameter in parameters:
            return f"{heading} options"
    return OTHER_HEADING


class DefaultsSource(NamedTuple):
    """Defaults of a command that come from one place."""

    place: str
    """The place as a sentence names it: exchange.toml, or the environment."""
    values: dict[str, Any]
    """Values by parameter."""


def configured_values(ctx: click.Context) -> dict[str, Any]:
    """Return the parameters whose values come from the file or the environment."""
    values = {}
    for name, value in ctx.params.items():
        if ctx.get_parameter_source(name) is ParameterSource.DEFAULT_MAP:
            values[name] = value
    return values


def _parameters_by_key(command: click.Command) -> dict[str, str]:
    """Return the command's parameters by their keys in the file, which are the options' names.

    For example: {"rate": "orders_per_s"}
    """
    options = (param for param in command.params if isinstance(param, click.Option) and param.expose_value)
    return {option.opts[0].removeprefix("--"): str(option.name) for option in options}


def _sources(parameter_of: Mapping[str, str], command: str) -> list[DefaultsSource]:
    """Return the file's defaults and the environment's; a later source takes precedence.

    UserError for a table or a key that no command has.
    """
    file = _read()
    tables = {name: value for name, value in file.items() if isinstance(value, dict)}
    for name in tables:
        if name not in CONFIGURED:
            raise _unknown(f"{FILE}: [{name}]", name, CONFIGURED)
    shared = {name: value for name, value in file.items() if name not in tables}
    _check_shared(shared, parameter_of)
    command_table = tables.get(command, {})
    if command_table:
        _check_keys(command_table, _keys_of(command), f"{FILE}, [{command}]")
    from_file = {**shared, **command_table}
    refused = sorted(ONLY_TYPED & from_file.keys())
    if refused:
        key = refused[0]
        raise UserError(
            f"{FILE}: {key} names a file with commands, and this folder may be another user's: type --{key}"
        )
    from_environment = {}
    for key in parameter_of:
        value = os.environ.get(PREFIX + key.replace("-", "_").upper())
        if value:
            from_environment[key] = value
    return [
        DefaultsSource(str(FILE), _by_parameter(from_file, parameter_of)),
        DefaultsSource("the environment", _by_parameter(from_environment, parameter_of)),
    ]


def _by_parameter(values: Mapping[str, Any], parameter_of: Mapping[str, str]) -> dict[str, Any]:
    """Return values, given by key, by the command's parameter; a key of other commands is left out."""
    return {parameter_of[key]: value for key, value in values.items() if key in parameter_of}


def _read() -> dict[str, Any]:
    """Return the content of exchange.toml; empty if there is none. UserError if it cannot be read."""
    try:
        return read_toml(FILE.absolute())
    except FileNotFoundError:
        return {}


def _check_shared(values: Mapping[str, Any], parameter_of: Mapping[str, str]) -> None:
    """UserError for a key of the file's first lines that no command has.

    The other commands are imported only if this one does not have all of the keys.
    """
    known = set(parameter_of)
    has_keys_of_others = bool(values.keys() - known)
    if has_keys_of_others:
        for name in CONFIGURED:
            known |= _keys_of(name)
    _check_keys(values, known, str(FILE))


def _check_keys(values: Mapping[str, Any], known: Iterable[str], where: str) -> None:
    """UserError for a key that is not known, or for a value that cannot be typed as an option."""
    for key, value in values.items():
        if key not in known:
            raise _unknown(f"{where}: {key!r}", key, known)
        if not isinstance(value, str | int | float):
            raise UserError(f'{where}: {key} is {value!r}; write what one would type, as rate = "8k"')


def _unknown(place: str, name: str, known: Iterable[str]) -> UserError:
    """Return the error for a name that is not known, with the nearest known name. `place` is where the name stands."""
    from exchange_simulation.experiments.sweep.keys import nearest

    return UserError(f"{place} is not known{nearest(name, known)}")


def _keys_of(name: str) -> set[str]:
    """Return the keys of a command; for bench, those of all benchmarks."""
    command: click.Command = importlib.import_module(f"exchange_simulation.cli.{name}").command
    if not isinstance(command, click.Group):
        return set(_parameters_by_key(command))
    context = click.Context(command)
    keys: set[str] = set()
    for name_of_subcommand in command.list_commands(context):
        subcommand = command.get_command(context, name_of_subcommand)
        if isinstance(subcommand, Command):
            keys |= _parameters_by_key(subcommand).keys()
    return keys


def _sentence_about_defaults(
    sources: Iterable[DefaultsSource], used: Collection[str], parameter_of: Mapping[str, str]
) -> str:
    """Return a sentence with the options whose values are configured, and the place of each.

    For example: from exchange.toml: --rate 4000; from the environment: --seed 7
    """
    place_of: dict[str, str] = {}
    value_of: dict[str, Any] = {}
    for source in sources:
        for name, value in source.values.items():
            if name in used:
                place_of[name] = source.place
                value_of[name] = value
    key_of = {parameter: key for key, parameter in parameter_of.items()}
    options_from: dict[str, list[str]] = {}
    for name, place in place_of.items():
        options_from.setdefault(place, []).append(f"--{key_of[name]} {value_of[name]}")
    return "; ".join(f"from {place}: {', '.join(options)}" for place, options in options_from.items())
