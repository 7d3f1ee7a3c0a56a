"""The settings of a run, made of the options that a user typed. An error names the option."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from exchange.allowed import BadSetting
from exchange.load_shape import LoadShape
from exchange.settings import DEFAULT_WINDOW, NAGLE_ROLES, ROLES, RunSettings
from exchange.workload import LEAST_SHARE
from exchange_simulation.launching.option_table import TABLE
from exchange_simulation.launching.priority import at_priority

MIX_OF_TAPE = "from:"
"""The beginning of a mix that is a tape's: from:tape.bin"""


def without_default_rate(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters without a rate and arrivals that the user did not type, so that a tape's own apply."""
    context = click.get_current_context()
    parameters = dict(given)
    for name in ("orders_per_s", "arrivals"):
        if context.get_parameter_source(name) is ParameterSource.DEFAULT:
            parameters.pop(name, None)
    return parameters


def run_settings(**given: Any) -> RunSettings:
    """Return the settings that the options give. UsageError names the option whose value is refused.

    With a tape, rate and arrivals default to the tape's; other values are refused.
    """
    from exchange_simulation.launching.transport_defaults import with_transport_defaults

    with naming_options():
        settings = with_transport_defaults(RunSettings(**_completed(given)))
    _check_may_have(settings.priority)
    return settings


def _check_may_have(priority: str) -> None:
    """Raise UserError if this system does not permit the priority. This is tested by taking it for a moment."""
    with at_priority(priority):
        pass


@contextlib.contextmanager
def naming_options() -> Iterator[None]:
    """Turn the BadSetting of a field into a UsageError of its option."""
    try:
        yield
    except BadSetting as error:
        option = _option_name(error.field)
        value = _as_typed(error.value)
        raise click.UsageError(f"{option} is {value}; allowed is {error.allowed}") from error


def _completed(given: dict[str, Any]) -> dict[str, Any]:
    """Return the fields, with those added that the user left out and that other options determine."""
    fields = dict(given)
    mix = fields.get("mix")
    if isinstance(mix, str) and mix.startswith(MIX_OF_TAPE):
        from exchange_simulation.launching.tape import mix_of_file

        fields["mix"] = mix_of_file(Path(mix.removeprefix(MIX_OF_TAPE)))
    shape = fields.get("orders_per_s")
    if isinstance(shape, LoadShape):
        fields |= _settings_of_shape(shape, fields)
    if fields.get("tape"):
        from exchange_simulation.launching.tape import settings_of_tape

        fields |= settings_of_tape(fields)
    if fields.get("orders") is None and fields.get("duration_s") is None:
        fields["orders"] = RunSettings.orders
    has_maximum_rate = "orders_per_s" in fields and fields["orders_per_s"] is None
    if has_maximum_rate and fields.get("window") is None:
        fields["window"] = max(DEFAULT_WINDOW, fields.get("packing") or 1)
    if fields.get("nagle") == ("all",):
        from transports.registry import has_broker

        transport = fields.get("transport", RunSettings.transport)
        fields["nagle"] = NAGLE_ROLES if has_broker(transport) else ROLES
    return fields


def _settings_of_shape(shape: LoadShape, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the rate, the arrivals and the duration of a load over time. BadSetting for settings that contradict it.

    An open end lasts as long as --duration says.
    """
    arrivals = given.get("arrivals")
    if arrivals not in (None, "fixed"):
        raise BadSetting("arrivals", arrivals, "fixed, where --rate says how the load changes")
    if given.get("tape"):
        raise BadSetting("orders_per_s", shape.text, "one rate, where a tape is replayed")
    duration_s = given.get("duration_s")
    if shape.is_open and duration_s is None:
        last_per_s = f"{shape.segments[-1].first:,.10g}"
        allowed = (
            f"a number of seconds, since the load has no end at {last_per_s}/s: give --duration 30s, or a last @TIME"
        )
        raise BadSetting("duration_s", "not given", allowed)
    lowest_allowed_per_s = LEAST_SHARE * shape.highest
    if any(min(segment.first, segment.last) < lowest_allowed_per_s for segment in shape.segments):
        allowed = f"rates from {lowest_allowed_per_s:,.10g} on, a thousandth of the highest"
        raise BadSetting("orders_per_s", shape.text, allowed)
    settled = shape.in_shares()
    if duration_s is not None:
        settled = settled.lasting(duration_s)
    return {
        "orders_per_s": shape.highest,
        "arrivals": f"steps:{settled.text}",
        "duration_s": settled.length_s,
        "orders": given.get("orders"),
    }


def was_typed(field: str) -> bool:
    """Return True if the parameter of the running command was on its command line."""
    context = click.get_current_context(silent=True)
    return context is not None and context.get_parameter_source(field) is ParameterSource.COMMANDLINE


def _option_name(field: str) -> str:
    """Return the name of the field's option as the user typed it, or the field's name if it has no option."""
    name_without_option = field.replace("_", "-")
    names_in_table = {option.field: option.name for option in TABLE}
    name_in_table = names_in_table.get(field, name_without_option)
    context = click.get_current_context(silent=True)
    if context is None:
        return name_in_table
    is_call_from_python = not context.command.params
    if is_call_from_python:
        return name_in_table
    names_in_command = {str(param.name): param.opts[0] for param in context.command.params}
    if field in names_in_table:
        plural = f"{names_in_table[field]}s"  # an option with several values: --rates for --rate
        if plural in names_in_command.values():
            return plural
    return names_in_command.get(field, name_without_option)


def _as_typed(value: object) -> str:
    """Format a value as a user types it: floats have no trailing .0, and no plus sign in an exponent.

    For example: 0.0 becomes 0, and 1e+20 becomes 1e20.
    """
    if isinstance(value, float):
        return f"{value:.10g}".replace("e+", "e")
    return str(value)
