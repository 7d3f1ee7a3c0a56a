"""The arms of a trial: one for each combination of the levels of its factors."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from exchange.settings import RunSettings

MakeSettings = Callable[..., RunSettings]
"""A function that makes settings from the fields in which arms differ. UserError for a mistake."""


@dataclass(frozen=True)
class Factor:
    """A field of the settings that differs between arms."""

    field: str
    levels: Mapping[str, Any]
    """The field's values, by the words that a reader sees."""


@dataclass(frozen=True)
class TrialArm:
    """One combination of levels. Contenders are compared with each other within a block."""

    contender: str
    block: str
    settings: RunSettings
    words_by_field: Mapping[str, str] = field(default_factory=dict)
    """The words of each of the contender's factors, by field; empty in plans of older versions."""
    checkout: Path | None = None
    """The folder of the code that measures the arm, by `exchange run`; None if this process measures it."""

    def differs_in_one(self, other: TrialArm) -> bool:
        """Return True if the arms differ in exactly one shared factor, so that this factor explains a difference.

        Arms without levels can always be compared.
        """
        if not self.words_by_field or not other.words_by_field:
            return True
        shared = self.words_by_field.keys() & other.words_by_field.keys()
        differing = [name for name in shared if self.words_by_field[name] != other.words_by_field[name]]
        return len(differing) == 1

    @property
    def label(self) -> str:
        return f"{self.contender} {self.block}".strip()

    @property
    def slug(self) -> str:
        """The label as part of a folder's name."""
        return re.sub(r"[^a-z0-9.]+", "-", self.label.replace(",", "").lower()).strip("-")


def arms_of(make: MakeSettings, contenders: Sequence[Factor], blocks: Sequence[Factor]) -> tuple[TrialArm, ...]:
    """Return an arm for every contender in every block.

    All settings are made before the first run, so that a mistake in one of them costs no run.
    """
    arms = []
    for block in _combinations(blocks):
        for contender in _combinations(contenders):
            arm = TrialArm(
                contender=_words(contender),
                block=_words(block),
                settings=make(**_values(contender), **_values(block)),
                words_by_field={level.field: level.words for level in contender},
            )
            arms.append(arm)
    return tuple(arms)


class Level(NamedTuple):
    """One value of a factor."""

    words: str
    field: str
    value: Any


def _combinations(factors: Sequence[Factor]) -> list[tuple[Level, ...]]:
    """Return every combination of the factors' levels."""
    levels_of_factors = []
    for factor in factors:
        levels_of_factors.append([Level(words, factor.field, value) for words, value in factor.levels.items()])
    return list(product(*levels_of_factors))


def _words(combination: tuple[Level, ...]) -> str:
    """Return the name of a combination. Levels without words are left out."""
    return ", ".join(level.words for level in combination if level.words)


def _values(combination: tuple[Level, ...]) -> dict[str, Any]:
    """Return the values of a combination, by field."""
    return {level.field: level.value for level in combination}
