"""A sweep as a user describes it, in a TOML file or by options: what varies, what all runs share, how often."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from experiments.sweep.keys import Key, key_of, nearest
from runs.errors import UserError

EXAMPLE = Path(__file__).with_name("example.toml")
NUMBERS = {"repeats": ("repeats", int), "pause": ("pause_s", (int, float))}
"""The description's field and its type, by the file's key."""
TABLES = ("vary", "run")
Levels = Mapping[str, Any]
"""Values of a setting, by the words in which they were written."""


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
    levels = {str(each): key.value(each, where) for each in written}
    if len(levels) < len(written):
        raise UserError(f"{where}: {key.name} has a value twice: {', '.join(map(str, written))}")
    return levels


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
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
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
