"""The keys of a sweep: the settings of a run that it may vary or set, each named as its option of `exchange run`."""

from __future__ import annotations

import copy
import difflib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any

import click

from exchange.load_shape import LoadShape
from exchange.settings import RunSettings
from exchange_simulation.launching.errors import UserError
from exchange_simulation.launching.option_table import TABLE
from transports.registry import known_schemes

SINGLE_RUN_KEYS = {"record", "capture", "journal", "sync", "recover", "standby"}
"""Settings that no sweep takes: they keep files or add latency, and runs that recovered are not compared."""
LIST_KEYS = {"nagle", "cpus", "mix", "arrivals"}
"""Keys whose values are lists. In a list of levels, the parts of such a value are joined by + in place of a comma."""
OPTION_OF_KEY = {
    "transport": "transports",
    "rate": "rates",
    "gateways": "numbers_of_gateways",
    "engines": "numbers_of_engines",
    "subscribers": "numbers_of_subscribers",
}
"""Keys that `exchange sweep` varies by an option of their own, in place of --vary, and the parameter of that option."""
HELP_OF_SWEEP = {
    "orders": "Orders of each run.  [default: what --duration allows]",
    "duration": "Seconds in which each run offers orders.  [default: 5]",
    "warm-up": "Seconds at a run's start that no figure counts.  [default: 1 if a run lasts 5 s or more, else 0]",
}
"""Help of the options of `exchange sweep` whose default differs from that of `exchange run`."""


@dataclass(frozen=True)
class Key:
    """A key of a sweep. Its name, type and notation are those of an option of `exchange run`, as `packing`."""

    name: str
    field: str
    """The field of RunSettings."""
    option: click.Option

    def value(self, written: object, where: str) -> Any:
        """Convert a value as `exchange run` does. UserError names `where` the user wrote the value."""
        if isinstance(written, bool) or not isinstance(written, str | int | float):
            raise UserError(f"{where}: {self.name} is {written!r}; it takes what --{self.name} of exchange run takes")
        text = str(written)
        typed = text.replace("+", ",") if self.name in LIST_KEYS else text
        try:
            value = self.option.type.convert(typed, None, None)
        except click.BadParameter as error:
            raise UserError(f"{where}: {self.name} is {text}: {error.message}") from error
        if isinstance(value, LoadShape):
            raise UserError(
                f"{where}: {self.name} is {text}, a load over time: vary arrivals, as arrivals=fixed,steps:0.1@5+1@5"
            )
        return value


def keys() -> dict[str, Key]:
    """Return all keys by name, in the order of `exchange run --help`."""
    settings = {field.name for field in fields(RunSettings)} - SINGLE_RUN_KEYS
    by_name = {}
    for row in TABLE:
        if "run" in row.commands and row.field in settings:
            name = row.name.removeprefix("--")
            by_name[name] = Key(name, row.field, row.parameter)
    return by_name


def shared_options(besides: Collection[str] = (), help: Mapping[str, str] | None = None) -> list[click.Option]:
    """Return the options of a command for settings that all of its runs share.

    Keys of OPTION_OF_KEY and of `besides` are left out: the command declares options of its own for them. `help` has
    the help of options whose default differs from that of `exchange run`.
    """
    excluded = {*OPTION_OF_KEY, *besides}
    options: dict[str, click.Option] = {}
    for name, key in keys().items():
        if name not in excluded:
            options[name] = copy.copy(key.option)
    for name, words in (help or {}).items():
        options[name].help = words
        options[name].show_default = False
    return list(options.values())


def key_of(name: str, where: str) -> Key:
    """Return the key of this name. UserError for an unknown name, with the nearest known one."""
    if name in SINGLE_RUN_KEYS:
        raise UserError(
            f"{where}: {name} is for a run by itself: it keeps files, or costs time that a sweep would measure"
        )
    known_keys = keys()
    if name not in known_keys:
        schemes_with_option = known_schemes(lambda transport, _: name in transport.options)
        if schemes_with_option:
            scheme = schemes_with_option[0]
            raise UserError(
                f"{where}: {name} is an option of a transport's URL: name a transport for each of its values, as in "
                f"--transports '{scheme},{scheme}?{name}=...'"
            )
        raise UserError(f"{where}: {name!r} is not known{nearest(name, known_keys)}")
    return known_keys[name]


def nearest(name: str, known: Iterable[str]) -> str:
    """Return the end of an error's sentence, which proposes the nearest known name, or else lists all.

    For example: ": did you mean rate?", or "; there are rate, orders"
    """
    close = difflib.get_close_matches(name, list(known), n=1)
    return f": did you mean {close[0]}?" if close else f"; there are {', '.join(known)}"
