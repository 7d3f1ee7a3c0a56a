"""Arms, which a trial compares: one for each point of a product of settings."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from exchange.settings import RunSettings

MakeSettings = Callable[..., RunSettings]
"""Makes settings from the fields that an arm chooses. UserError for a mistake."""


@dataclass(frozen=True)
class Factor:
    """A field of the settings that differs between arms; `levels` are its values by the words a reader sees."""

    field: str
    levels: Mapping[str, Any]


@dataclass(frozen=True)
class TrialArm:
    """One point of the product. Contenders are compared with each other within a block."""

    contender: str
    block: str
    settings: RunSettings
    levels: Mapping[str, str] = field(default_factory=dict)
    """The words of each of the contender's factors, by field; empty if the name alone makes the contender."""

    def differs_in_one(self, other: TrialArm) -> bool:
        """True if the arms differ in exactly one shared factor: with more, no one could say which one mattered."""
        if not self.levels or not other.levels:
            return True
        both = self.levels.keys() & other.levels.keys()
        return sum(self.levels[name] != other.levels[name] for name in both) == 1

    @property
    def label(self) -> str:
        return f"{self.contender} {self.block}".strip()

    @property
    def slug(self) -> str:
        """The label as part of a folder's name."""
        return re.sub(r"[^a-z0-9.]+", "-", self.label.replace(",", "").lower()).strip("-")


def arms_of(make: MakeSettings, contenders: Sequence[Factor], blocks: Sequence[Factor]) -> tuple[TrialArm, ...]:
    """Every contender in every block. Makes all settings at once, so that a mistake costs no run."""
    return tuple(
        TrialArm(
            _words(contender),
            _words(block),
            make(**_values(contender), **_values(block)),
            {name: words for words, name, _ in contender},
        )
        for block in _points(blocks)
        for contender in _points(contenders)
    )


Level = tuple[str, str, Any]
"""(words, field, value)"""


def _points(factors: Sequence[Factor]) -> list[tuple[Level, ...]]:
    """The product of the factors."""
    levels_of_factors = []
    for factor in factors:
        levels_of_factors.append([(words, factor.field, value) for words, value in factor.levels.items()])
    return list(product(*levels_of_factors))


def _words(point: tuple[Level, ...]) -> str:
    return ", ".join(words for words, _, _ in point if words)


def _values(point: tuple[Level, ...]) -> dict[str, Any]:
    return {name: value for _, name, value in point}
