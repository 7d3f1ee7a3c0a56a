"""A sweep's plan, made from a description in a TOML file and from options.

The description has the settings that vary with their values, the settings that all runs share, and the number of
repeats. The arms are all combinations of the values, without the impossible ones.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import click

from exchange.settings import TRANSPORT_SETTINGS, RunSettings
from exchange_simulation.experiments.comparison_arms import ArmSettings, of_one_kind, rate_factor, rate_words
from exchange_simulation.experiments.sweep.keys import OPTION_OF_KEY, Key, key_of, keys, nearest
from exchange_simulation.experiments.trials.arms import Factor, TrialArm, arms_of
from exchange_simulation.experiments.trials.plan import TrialPlan, expected_s
from exchange_simulation.experiments.trials.study import SWEEP
from exchange_simulation.experiments.trials.trial import duration
from exchange_simulation.launching.errors import UserError
from exchange_simulation.launching.toml_file import read_toml
from exchange_simulation.launching.transport_defaults import defaults_of
from transports.registry import has_broker

EXAMPLE = Path(__file__).with_name("example.toml")


class NumberKey(NamedTuple):
    """A key of the file whose value is a number."""

    field: str
    """The description's field."""
    types: tuple[type, ...]


NUMBERS = {"repeats": NumberKey("repeats", (int,)), "pause": NumberKey("pause_s", (int, float))}
TABLES = ("vary", "run")
"""The tables of the file."""
Levels = Mapping[str, Any]
"""Values of a setting, by the words in which they were written."""
A_DAY_S = 86_400.0
CONDITIONS = (
    "rate",
    "gateways",
    "arrivals",
    "orders",
    "duration",
    "seed",
    "prices",
    "price-model",
    "tape",
    "speed",
    "network",
)
"""Keys of the load and the network. If other keys vary too, only arms with equal values of these keys are compared."""
DEFAULT_TRANSPORT = "zeromq"
DEFAULT_RATE = 8000.0
DEFAULT_DURATION_S = 5.0
WARM_UP_S = 1.0
LEAST_LENGTH_S = 5.0
"""By default, analysis leaves out the first WARM_UP_S of a run that lasts LEAST_LENGTH_S or more."""


@dataclass(frozen=True, kw_only=True)
class Description:
    """The description of a sweep."""

    repeats: int = 10
    pause_s: float = 0.5
    vary: Mapping[str, Levels] = field(default_factory=dict)
    """The values that vary, by key."""
    run: Mapping[str, Any] = field(default_factory=dict)
    """The values that all runs share, by key."""

    def with_typed(self, typed: TypedKeys, **numbers: Any) -> Description:
        """Return the same description, in which the typed keys and numbers replace those of the file.

        `orders` and `duration` of either kind replace both of the earlier values for all runs, or the lesser would end
        each run. A key keeps its place in the file.
        """
        vary = {name: levels for name, levels in self.vary.items() if name not in typed.run}
        run = {name: value for name, value in self.run.items() if name not in typed.vary}
        typed_names = typed.run.keys() | typed.vary.keys()
        if "orders" in typed_names or "duration" in typed_names:
            run.pop("orders", None)
            run.pop("duration", None)
        return replace(self, vary={**vary, **typed.vary}, run={**run, **typed.run}, **numbers)


@dataclass(frozen=True)
class TypedKeys:
    """The keys that were typed as options."""

    vary: Mapping[str, Levels]
    run: Mapping[str, Any]


def levels_of(key: Key, written: list[object], where: str) -> Levels:
    """Return the values of a key, as levels. UserError if there is no value, or the same value twice."""
    if not written:
        raise UserError(f"{where}: {key.name} has no values: a product with none of them has no runs")
    levels = {}
    values = []
    for word in written:
        value = key.value(word, where)
        if value in values:
            raise UserError(f"{where}: {key.name} has a value twice: {', '.join(map(str, written))}")
        values.append(value)
        # A transport is converted, since `zmq` and `zeromq` are names of one scheme.
        words = value if key.name == "transport" else str(word)
        levels[words] = value
    return levels


def typed_levels(text: str) -> tuple[str, Levels]:
    """Return the key's name and the values of --vary NAME=VALUE,VALUE."""
    name, equals, values = text.partition("=")
    if not equals:
        raise UserError(f"--vary {text}: give NAME=VALUE,VALUE, as packing=1,10")
    written: list[object] = [value.strip() for value in values.split(",") if value.strip()]
    return name.strip(), levels_of(key_of(name.strip(), "--vary"), written, "--vary")


def read_description(path: Path) -> Description:
    """Read a TOML file with `repeats`, `pause`, [vary] and [run]. UserError names the file, the key and its values."""
    try:
        written = read_toml(path, "; exchange sweep --example prints one")
    except FileNotFoundError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from error
    for name in written:
        if name not in {*NUMBERS, *TABLES}:
            raise UserError(f"{path}: {name!r} is not known{nearest(name, [*NUMBERS, *TABLES])}")
    numbers = {}
    for name, number in NUMBERS.items():
        if name in written:
            numbers[number.field] = _number(path, name, number.types, written[name])
    return Description(**numbers, vary=_vary(path, written), run=_run(path, written))


def _number(path: Path, name: str, types: tuple[type, ...], value: Any) -> Any:
    """Return the value. UserError unless it has one of these types."""
    if isinstance(value, bool) or not isinstance(value, types):
        number = "number" if float in types else "whole number"
        raise UserError(f"{path}: {name} is {value!r}; it takes a {number}")
    return value


def _table(path: Path, name: str, written: dict[str, Any]) -> dict[str, Any]:
    """Return a table of the file; empty if the file has none."""
    table = written.get(name, {})
    if not isinstance(table, dict):
        raise UserError(f"{path}: {name} is {table!r}; it is a table: write [{name}] and its keys below")
    return table


def _vary(path: Path, written: dict[str, Any]) -> dict[str, Any]:
    """Return the levels of the [vary] table, by key."""
    where = f"{path}, [vary]"
    varied = {}
    for name, values in _table(path, "vary", written).items():
        key = key_of(name, where)
        if not isinstance(values, list):
            raise UserError(f"{where}: {name} is {values!r}; it takes a list, as [{values!r}]")
        varied[name] = levels_of(key, values, where)
    return varied


def _run(path: Path, written: dict[str, Any]) -> dict[str, Any]:
    """Return the values of the [run] table, by key. UserError for a key that [vary] has, too."""
    where = f"{path}, [run]"
    table = _table(path, "run", written)
    in_both = table.keys() & _table(path, "vary", written).keys()
    if in_both:
        raise UserError(f"{path}: {', '.join(sorted(in_both))} stands in both [vary] and [run]")
    return {name: key_of(name, where).value(value, where) for name, value in table.items()}


def planned(file: Path | None, configured: Mapping[str, Any], typed: Mapping[str, Any]) -> TrialPlan:
    """Make the plan from a file, then from defaults of the user's own, then from typed options; the later replaces.

    `configured` and `typed` are values by parameter of the command. UserError, BadSetting for a mistake.
    """
    description = read_description(file) if file else Description()
    for values in (configured, typed):
        numbers = {name: values[name] for name in ("repeats", "pause_s") if name in values}
        description = description.with_typed(_typed_keys(values), **numbers)
    return TrialPlan(
        arms=sweep_arms(description),
        repeats=description.repeats,
        seed=description.run.get("seed", RunSettings.seed),
        study=SWEEP,
        pause_s=description.pause_s,
    )


def _typed_keys(typed: Mapping[str, Any]) -> TypedKeys:
    """Return the keys among the typed parameters of the command. UserError for a key that was given twice."""
    run = {name: typed[key.field] for name, key in keys().items() if key.field in typed}
    written = [f"{key}={typed[option]}" for key, option in OPTION_OF_KEY.items() if option in typed]
    written += typed.get("vary", ())
    vary: dict[str, Levels] = {}
    twice = []
    for text in written:
        name, levels = typed_levels(text)
        if (name in vary or name in run) and name not in twice:
            twice.append(name)
        vary[name] = levels
    if twice:
        raise UserError(f"{', '.join(twice)} is given twice: vary it, or set it for all runs")
    return TypedKeys(vary, run)


def confirm(plan: TrialPlan, yes: bool) -> None:
    """Ask before more than a day of runs. UserError if nobody is at the terminal."""
    steps = plan.longest.steps
    seconds = expected_s(plan, [*plan.warm_ups, *steps])
    if yes or seconds <= A_DAY_S:
        return
    up_to = "up to " if plan.looks else ""
    warning = f"{up_to}{len(steps)} runs take about {duration(seconds)}, more than a day"
    if not sys.stdin.isatty():
        raise UserError(f"{warning}: say --yes, or shorten it with --orders, --duration, --repeats or fewer values")
    click.confirm(f"{warning}. Go on?", abort=True, err=True)


def sweep_arms(description: Description) -> tuple[TrialArm, ...]:
    """Return all arms of a sweep. UserError for a mistake in any of them."""
    vary = dict(description.vary)
    run = dict(description.run)
    if "transport" in vary:
        transports = vary.pop("transport")
    else:
        transports = _single_level(run.pop("transport", DEFAULT_TRANSPORT))
    has_tape = "tape" in vary or "tape" in run
    if "rate" not in vary and ("rate" in run or not has_tape):
        vary["rate"] = _single_level(run.pop("rate", DEFAULT_RATE))
    for key, levels in vary.items():
        if not any(_possible(key, levels, transport) for transport in transports.values()):
            lacks = f"vary: {key} is {','.join(levels)}, which {', '.join(transports)} cannot have"
            raise UserError(f"{lacks}: leave it out, or add a transport that can")
    given = {key.field: run[name] for name, key in keys().items() if name in run}
    settings = SweepSettings(list(transports.values()), given)
    arms: list[TrialArm] = []
    for words, transport in transports.items():
        arms += _over({words: transport}, vary, settings)
    return of_one_kind(tuple(arms))


def _single_level(value: Any) -> Levels:
    """Return the value as the only level of a key."""
    return {str(value): value}


def _over(transport: Levels, vary: Mapping[str, Levels], settings: SweepSettings) -> tuple[TrialArm, ...]:
    """Return the arms over one transport, without the levels that the transport cannot have.

    Keys of CONDITIONS make blocks, and all other keys contenders. If only conditions vary, and there is one transport,
    all keys but the rate make contenders. Without a rate, the names of the arms have the rate of the tape.
    """
    (name,) = transport.values()
    possible = {}
    for key, levels in vary.items():
        levels_there = _possible(key, levels, name)
        if levels_there:
            possible[key] = levels_there
    conditions = [key for key in possible if key in CONDITIONS]
    if len(conditions) == len(possible) and not settings.several_transports:
        conditions = ["rate"]
    contenders = [_factor(key, levels) for key, levels in possible.items() if key not in conditions]
    is_named = settings.several_transports or not contenders
    contenders.insert(0, Factor("transport", transport if is_named else {"": name}))
    blocks = []
    if "rate" in possible:
        blocks.append(rate_factor(list(possible["rate"].values())))
    for key in conditions:
        if key != "rate":
            blocks.append(_factor(key, possible[key]))
    arms = arms_of(settings, contenders, blocks)
    if "rate" in possible:
        return arms
    return tuple(_with_rate_in_name(arm) for arm in arms)


def _with_rate_in_name(arm: TrialArm) -> TrialArm:
    """Return the arm with its rate in the name of its block."""
    rate = rate_words(arm.settings.orders_per_s)
    return replace(arm, block=f"{rate}, {arm.block}" if arm.block else rate)


def _possible(key: str, levels: Levels, transport: str) -> Levels:
    """Return the levels that a transport can have. It may lack the setting, or the broker of a level."""
    field_name = keys()[key].field
    if field_name in TRANSPORT_SETTINGS and field_name not in defaults_of(transport):
        return {}
    if field_name == "nagle" and not has_broker(transport):
        return {words: roles for words, roles in levels.items() if "broker" not in roles}
    return levels


def _factor(key: str, levels: Levels) -> Factor:
    """Return the factor of a key. Its levels are named by the key and the value."""
    return Factor(keys()[key].field, {f"{key} {words}": value for words, value in levels.items()})


class SweepSettings:
    """Makes an arm's settings, with the default warm-up if the description has none."""

    def __init__(self, transports: list[str], given: dict[str, Any]) -> None:
        self.several_transports = len(transports) > 1
        self._arm_settings = ArmSettings(transports, DEFAULT_DURATION_S, given)
        self._has_warm_up = "warm_up_s" in given

    def __call__(self, **chosen: Any) -> RunSettings:
        """Return the settings of an arm. UserError or BadSetting for a mistake."""
        settings = self._arm_settings(**chosen)
        if self._has_warm_up or "warm_up_s" in chosen:
            return settings
        is_long = settings.length_s is not None and settings.length_s >= LEAST_LENGTH_S
        return replace(settings, warm_up_s=WARM_UP_S if is_long else 0.0)
