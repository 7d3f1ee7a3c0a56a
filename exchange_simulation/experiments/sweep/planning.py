"""A sweep's plan, from its description in a TOML file and by options.

A description says what varies, what all runs share, and how often each arm runs. The arms are every combination of
what varies, without the impossible ones.
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import click

from exchange.settings import TRANSPORT_SETTINGS, RunSettings
from exchange_simulation.experiments.comparison_arms import ArmSettings, of_one_kind, rate_factor, rate_words
from exchange_simulation.experiments.sweep.keys import SHORT, Key, key_of, keys, nearest
from exchange_simulation.experiments.trials.arms import Arm, Factor, arms_of
from exchange_simulation.experiments.trials.plan import Plan, expected_s
from exchange_simulation.experiments.trials.study import SWEEP
from exchange_simulation.experiments.trials.trial import duration
from exchange_simulation.launching.errors import UserError
from exchange_simulation.launching.transport_settings import defaults_of
from transports.registry import has_broker

EXAMPLE = Path(__file__).with_name("example.toml")
NUMBERS = {"repeats": ("repeats", int), "pause": ("pause_s", (int, float))}
"""The description's field and its type, by the file's key."""
TABLES = ("vary", "run")
Levels = Mapping[str, Any]
"""Values of a setting, by the words in which they were written."""
A_DAY_S = 86_400.0
CONDITIONS = (
    "rate",
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
"""Keys of the offered load and its place. If other keys vary too, only arms under equal conditions are compared."""
DEFAULT_TRANSPORT, DEFAULT_RATE, DEFAULT_DURATION_S = "zeromq", 8000.0, 5.0
WARM_UP_S, LEAST_LENGTH_S = 1.0, 5.0
"""By default, analysis leaves out the first second of a run of five seconds or more."""


@dataclass(frozen=True, kw_only=True)
class Description:
    """`vary` and `run` by key, as in files and options."""

    repeats: int = 10
    pause_s: float = 0.5
    vary: Mapping[str, Levels] = field(default_factory=dict)
    run: Mapping[str, Any] = field(default_factory=dict)

    def with_typed(self, vary: Mapping[str, Levels], run: Mapping[str, Any], **numbers: Any) -> Description:
        """The same description, in which what was typed replaces what the file says, key by key."""
        varied = {name: levels for name, levels in self.vary.items() if name not in run}
        shared = {name: value for name, value in self.run.items() if name not in vary}
        if "orders" in run or "duration" in run:
            shared = {name: value for name, value in shared.items() if name not in {"orders", "duration"}}
        return replace(self, vary={**varied, **vary}, run={**shared, **run}, **numbers)


def levels_of(key: Key, written: list[object], where: str) -> Levels:
    """The values of a key. UserError if there is none, or one twice."""
    if not written:
        raise UserError(f"{where}: {key.name} has no values: a product with none of them has no runs")
    values = [key.value(each, where) for each in written]
    words = values if key.name == "transport" else map(str, written)
    if any(values.count(value) > 1 for value in values):
        raise UserError(f"{where}: {key.name} has a value twice: {', '.join(map(str, written))}")
    return dict(zip(words, values, strict=True))


def typed_levels(text: str) -> tuple[str, Levels]:
    """The key and values of --vary NAME=VALUE,VALUE."""
    name, equals, values = text.partition("=")
    if not equals:
        raise UserError(f"--vary {text}: give NAME=VALUE,VALUE, as packing=1,10")
    written: list[object] = [value.strip() for value in values.split(",") if value.strip()]
    return name.strip(), levels_of(key_of(name.strip(), "--vary"), written, "--vary")


def read_description(path: Path) -> Description:
    """A TOML file with `repeats`, `pause`, [vary] and [run]. UserError names the file, the key and what it takes."""
    try:
        written = tomllib.loads(path.read_text())
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UserError(f"{path} is no TOML: {error}; exchange sweep --example prints one") from error
    for name in written:
        if name not in {*NUMBERS, *TABLES}:
            raise UserError(f"{path}: {name!r} is not known{nearest(name, [*NUMBERS, *TABLES])}")
    numbers = {field: _number(path, name, kind, written) for name, (field, kind) in NUMBERS.items() if name in written}
    return Description(**numbers, vary=_vary(path, written), run=_run(path, written))


def _number(path: Path, name: str, kind: Any, written: dict[str, Any]) -> Any:
    value = written[name]
    if isinstance(value, bool) or not isinstance(value, kind):
        raise UserError(f"{path}: {name} is {value!r}; it takes a {'whole ' if kind is int else ''}number")
    return value


def _table(path: Path, name: str, written: dict[str, Any]) -> dict[str, Any]:
    table = written.get(name, {})
    if not isinstance(table, dict):
        raise UserError(f"{path}: {name} is {table!r}; it is a table: write [{name}] and its keys below")
    return table


def _vary(path: Path, written: dict[str, Any]) -> dict[str, Any]:
    where, found = f"{path}, [vary]", {}
    for name, values in _table(path, "vary", written).items():
        key = key_of(name, where)
        if not isinstance(values, list):
            raise UserError(f"{where}: {name} is {values!r}; it takes a list, as [{values!r}]")
        found[name] = levels_of(key, values, where)
    return found


def _run(path: Path, written: dict[str, Any]) -> dict[str, Any]:
    """The [run] table. UserError for a key that [vary] has, too."""
    where, table = f"{path}, [run]", _table(path, "run", written)
    twice = table.keys() & _table(path, "vary", written).keys()
    if twice:
        raise UserError(f"{path}: {', '.join(sorted(twice))} stands in both [vary] and [run]")
    return {name: key_of(name, where).value(value, where) for name, value in table.items()}


def planned(file: Path | None, typed: Mapping[str, Any]) -> Plan:
    """The plan from a file and from `typed`, by parameter of the command. UserError or BadSetting for a mistake."""
    numbers = {name: typed[name] for name in ("repeats", "pause_s") if name in typed}
    described = (read_description(file) if file else Description()).with_typed(*_typed(typed), **numbers)
    arms, seed = sweep_arms(described), described.run.get("seed", RunSettings.seed)
    return Plan(arms=arms, repeats=described.repeats, seed=seed, study=SWEEP, pause_s=described.pause_s)


def _typed(typed: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """What was typed, as (vary, run), each by key."""
    short = [f"{key}={typed[option]}" for key, option in SHORT.items() if option in typed]
    varied = list(map(typed_levels, [*short, *typed.get("vary", ())]))
    vary, names = dict(varied), [name for name, _ in varied]
    run = {name: typed[key.field] for name, key in keys().items() if key.field in typed}
    twice = [name for name in vary if name in run or names.count(name) > 1]
    if twice:
        raise UserError(f"{', '.join(twice)} is given twice: vary it, or set it for all runs")
    return vary, run


def confirm(plan: Plan, yes: bool) -> None:
    """Ask before more than a day of runs. UserError if nobody is at the terminal."""
    steps = plan.longest.steps
    seconds = expected_s(plan, [*plan.warm_ups, *steps])
    if yes or seconds <= A_DAY_S:
        return
    warning = f"{'up to ' if plan.looks else ''}{len(steps)} runs take about {duration(seconds)}, more than a day"
    if not sys.stdin.isatty():
        raise UserError(f"{warning}: say --yes, or shorten it with --orders, --duration, --repeats or fewer values")
    click.confirm(f"{warning}. Go on?", abort=True, err=True)


def sweep_arms(description: Description) -> tuple[Arm, ...]:
    """All arms of a sweep. UserError for a mistake in any of them."""
    vary, run = dict(description.vary), dict(description.run)
    transports = vary.pop("transport", None) or _only(run.pop("transport", DEFAULT_TRANSPORT))
    if "rate" in run or not ("tape" in vary or "tape" in run):
        vary.setdefault("rate", _only(run.pop("rate", DEFAULT_RATE)))
    for key, levels in vary.items():
        if not any(_possible(key, levels, transport) for transport in transports.values()):
            lacks = f"vary: {key} is {','.join(levels)}, which {', '.join(transports)} cannot have"
            raise UserError(f"{lacks}: leave it out, or add a transport that can")
    given = {key.field: run[name] for name, key in keys().items() if name in run}
    settings = SweepSettings(list(transports.values()), given)
    return of_one_kind(tuple(arm for words in transports for arm in _over({words: transports[words]}, vary, settings)))


def _only(value: Any) -> Levels:
    return {str(value): value}


def _over(transport: Levels, vary: Mapping[str, Levels], settings: SweepSettings) -> tuple[Arm, ...]:
    """The arms over one transport, without the levels that it lacks. Without a rate, a tape's stands in their names."""
    (name,) = transport.values()
    possible = {key: _possible(key, levels, name) for key, levels in vary.items()}
    possible = {key: levels for key, levels in possible.items() if levels}
    conditions = [key for key in possible if key in CONDITIONS]
    if len(conditions) == len(possible) and not settings.several_transports:
        conditions = ["rate"]
    contenders = [_factor(key, levels) for key, levels in possible.items() if key not in conditions]
    alone = settings.several_transports or not contenders
    rates = [rate_factor(list(possible["rate"].values()))] if "rate" in possible else []
    arms = arms_of(
        settings,
        [Factor("transport", transport if alone else {"": name}), *contenders],
        [*rates, *(_factor(key, possible[key]) for key in conditions if key != "rate")],
    )
    return arms if rates else tuple(map(_with_its_rate, arms))


def _with_its_rate(arm: Arm) -> Arm:
    return replace(arm, block=", ".join(filter(None, (rate_words(arm.settings.orders_per_s), arm.block))))


def _possible(key: str, levels: Levels, transport: str) -> Levels:
    """The levels that a transport can have: none of a setting that it lacks, no Nagle at the broker if it has none."""
    field = keys()[key].field
    if field in TRANSPORT_SETTINGS and field not in defaults_of(transport):
        return {}
    if field != "nagle" or has_broker(transport):
        return levels
    return {words: roles for words, roles in levels.items() if "broker" not in roles}


def _factor(key: str, levels: Levels) -> Factor:
    return Factor(keys()[key].field, {f"{key} {words}": value for words, value in levels.items()})


class SweepSettings:
    """Makes an arm's settings, with the default warm-up unless one is given or chosen."""

    def __init__(self, transports: list[str], given: dict[str, Any]) -> None:
        self.several_transports = len(transports) > 1
        self._arm_settings = ArmSettings(transports, DEFAULT_DURATION_S, given)
        self._by_default = "warm_up_s" not in given

    def __call__(self, **chosen: Any) -> RunSettings:
        settings = self._arm_settings(**chosen)
        if not self._by_default or "warm_up_s" in chosen:
            return settings
        return replace(settings, warm_up_s=WARM_UP_S if (settings.length_s or 0.0) >= LEAST_LENGTH_S else 0.0)
