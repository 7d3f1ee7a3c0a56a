"""A sweep's file: TOML with `repeats`, `pause`, what [vary] says, and what all of [run] share."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from experiments.sweep.description import Description, levels_of
from experiments.sweep.keys import key_of, nearest
from runs.errors import UserError

EXAMPLE = Path(__file__).with_name("example.toml")
NUMBERS = {"repeats": ("repeats", int), "pause": ("pause_s", (int, float))}
"""By key: the description's field, and its type."""
TABLES = ("vary", "run")


def read_description(path: Path) -> Description:
    """UserError names the file, the key, and what it takes."""
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
    """What is varied cannot be shared, too."""
    where, table = f"{path}, [run]", _table(path, "run", written)
    twice = table.keys() & _table(path, "vary", written).keys()
    if twice:
        raise UserError(f"{path}: {', '.join(sorted(twice))} stands in both [vary] and [run]")
    return {name: key_of(name, where).value(value, where) for name, value in table.items()}
