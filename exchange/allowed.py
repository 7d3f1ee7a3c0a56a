"""Checks of settings and registries, and the error that a user sees where a setting is refused."""

from __future__ import annotations

import math
from collections.abc import Collection


class BadSetting(ValueError):
    """A refused setting: its field, its value, and what is allowed."""

    def __init__(self, name: str, value: object, allowed: str) -> None:
        super().__init__(f"{name.replace('_', '-')} is {value!r}; allowed is {allowed}")
        self.field = name
        self.value = value
        self.allowed = allowed


def between(name: str, value: object, low: float, high: float) -> None:
    """Raise BadSetting unless the value is a number from low to high."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not (is_number and math.isfinite(value) and low <= value <= high):  # type: ignore[arg-type, operator]
        raise BadSetting(name, value, f"{low:,} to {high:,}")


def whole(name: str, value: object, low: int, high: int) -> None:
    """Raise BadSetting unless the value is a whole number from low to high."""
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    if not (is_whole and low <= value <= high):  # type: ignore[operator]
        raise BadSetting(name, value, f"a whole number from {low:,} to {high:,}")


def one_of(name: str, value: object, words: Collection[str], allowed: str = "") -> None:
    """Raise BadSetting unless the value is one of the words. `allowed` describes them; by default they are listed."""
    if value not in words:
        description = allowed or " or ".join(words)
        raise BadSetting(name, value, description + meant(value, words))


def meant(value: object, words: Collection[str]) -> str:
    """Return the end of a refusal: the word that the user probably meant; empty if the value is close to none.

    For example: ; did you mean 'zeromq'?
    """
    import difflib  # components start without it

    close = difflib.get_close_matches(str(value), words, n=1)
    return f"; did you mean {close[0]!r}?" if close else ""


def check_registry(registry: str, entries: Collection[str], words: Collection[str]) -> None:
    """Raise LookupError, naming the words, unless the registry has exactly these words as keys."""
    missing = sorted(set(words) - set(entries))
    unknown = sorted(set(entries) - set(words))
    if missing or unknown:
        raise LookupError(f"{registry}: no entry for {missing}; entries of no known word: {unknown}")
