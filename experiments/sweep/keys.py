"""What a sweep may vary or set: the options of `exchange run` that a run's settings have, under their own names."""

from __future__ import annotations

import copy
import difflib
from collections.abc import Collection, Iterable
from dataclasses import dataclass, fields
from typing import Any

import click

from exchange.settings import RunSettings
from runs.errors import UserError
from runs.options import run_options

OF_A_RUN_ALONE = {"record", "capture"}
"""What keeps files, or costs a run its latency: nothing for hundreds of runs."""
LISTS = {"nagle", "cpus"}
"""Options whose own values have commas between them: in a list of levels they are written with +."""

SHORT = {"transport": "transports", "rate": "rates"}
"""Keys that exchange sweep has an option for, to vary them."""
HELP = {
    "orders": "Orders of each run.  [default: what --duration allows]",
    "duration": "Seconds in which each run offers orders.  [default: 5]",
    "warm-up": "Seconds that analysis leaves out.  [default: 1 of a run of 5 or more]",
}
"""Where a sweep's default is another than a run's."""


@click.command()
@run_options
def _run(**_given: Any) -> None:
    """Carries the options of `exchange run`; never called."""


@dataclass(frozen=True)
class Key:
    """An option of `exchange run`: `packing` is `--packing`."""

    name: str
    option: click.Option

    @property
    def field(self) -> str:
        """Of the settings."""
        return str(self.option.name)

    def value(self, written: object, where: str) -> Any:
        """As `exchange run` would take it. UserError names the key and the place where it was written."""
        if isinstance(written, bool) or not isinstance(written, str | int | float):
            raise UserError(f"{where}: {self.name} is {written!r}; it takes what --{self.name} of exchange run takes")
        text = str(written)
        try:
            return self.option.type.convert(text.replace("+", ",") if self.name in LISTS else text, None, None)
        except click.BadParameter as error:
            raise UserError(f"{where}: {self.name} is {text}: {error.message}") from error


def keys() -> dict[str, Key]:
    """By name, in the order of `exchange run --help`."""
    known = {field.name for field in fields(RunSettings)} - OF_A_RUN_ALONE
    options = [each for each in _run.params if isinstance(each, click.Option) and each.name in known]
    return {name: Key(name, option) for option in options for name in [option.opts[0].removeprefix("--")]}


def shared_options(besides: Collection[str] = ()) -> list[click.Option]:
    """For a command, to set what all its runs share, besides what it has options of its own for."""
    return [_with_help(key) for key in keys().values() if key.name not in {*SHORT, *besides}]


def _with_help(key: Key) -> click.Option:
    option = copy.copy(key.option)
    if key.name in HELP:
        option.help, option.show_default = HELP[key.name], False
    return option


def key_of(name: str, where: str) -> Key:
    """UserError with the nearest name there is."""
    found = keys().get(name)
    if found is None:
        raise UserError(f"{where}: {name!r} is not known{nearest(name, keys())}")
    return found


def nearest(name: str, known: Iterable[str]) -> str:
    """What may have been meant, else what there is."""
    close = difflib.get_close_matches(name, list(known), n=1)
    return f": did you mean {close[0]}?" if close else f"; there are {', '.join(known)}"
