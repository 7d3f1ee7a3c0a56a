"""What a trial compares: arms, one for each point of a product of settings."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
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
        Arm(contender, block, make(**chosen, **held))
        for block, held in _points(blocks)
        for contender, chosen in _points(contenders)
    )


def _points(factors: Sequence[Factor]) -> list[tuple[str, dict[str, Any]]]:
    """(words, fields) of each point of the factors' product."""
    levels = [[(words, factor.field, value) for words, value in factor.levels.items()] for factor in factors]
    return [
        (", ".join(words for words, _, _ in point), {field: value for _, field, value in point})
        for point in product(*levels)
    ]
