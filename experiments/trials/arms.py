"""What a trial compares: arms, one for each point of a product of settings."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from exchange.settings import RunSettings

MakeSettings = Callable[..., RunSettings]
"""Settings from what an arm chooses, field by field; raises a user's mistake."""


@dataclass(frozen=True)
class Factor:
    """A field of the settings that differs between arms: its levels, by the words a reader sees."""

    field: str
    levels: Mapping[str, Any]


@dataclass(frozen=True)
class Arm:
    """One point of the product. Contenders are compared with each other within a block."""

    contender: str
    block: str
    settings: RunSettings
    levels: Mapping[str, str] = field(default_factory=dict)
    """What makes the contender: a factor's words by its field. Empty where a single thing does, its name."""

    def differs_in_one(self, other: Arm) -> bool:
        """Of the factors that both have, one: of arms that differ in more, no one could say which of them it was."""
        if not self.levels or not other.levels:
            return True
        both = self.levels.keys() & other.levels.keys()
        return sum(self.levels[name] != other.levels[name] for name in both) == 1

    @property
    def label(self) -> str:
        return f"{self.contender} {self.block}".strip()

    @property
    def slug(self) -> str:
        """The label as a part of a folder's name."""
        return re.sub(r"[^a-z0-9.]+", "-", self.label.replace(",", "").lower()).strip("-")


def arms_of(make: MakeSettings, contenders: Sequence[Factor], blocks: Sequence[Factor]) -> tuple[Arm, ...]:
    """Every contender in every block; every arm's settings are made here, so that a mistake costs no run."""
    return tuple(
        Arm(_words(contender), _words(block), make(**_values(contender), **_values(block)), _levels(contender))
        for block in _points(blocks)
        for contender in _points(contenders)
    )


Level = tuple[str, str, Any]
"""(words, field, value)"""


def _points(factors: Sequence[Factor]) -> list[tuple[Level, ...]]:
    """The factors' product."""
    return list(product(*([(words, f.field, value) for words, value in f.levels.items()] for f in factors)))


def _words(point: tuple[Level, ...]) -> str:
    return ", ".join(words for words, _, _ in point if words)


def _values(point: tuple[Level, ...]) -> dict[str, Any]:
    return {name: value for _, name, value in point}


def _levels(point: tuple[Level, ...]) -> dict[str, str]:
    return {name: words for words, name, _ in point}
