"""What a search for a capacity turns up: orders a second, or the scale of a benchmark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class LoadAxis:
    """`name` is part of the record's fields, as in capacity_orders_per_s; `noun` and `unit` are for sentences."""

    name: str = "orders_per_s"
    noun: str = "rate"
    unit: str = "orders/s"
    ceiling: str = "the generator's own ceiling"
    """What the highest value is."""
    whole: bool = False
    """Only whole numbers can be offered."""

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> LoadAxis:
        """A record's axis; an older version's had the exchange's."""
        return cls(**record.get("axis", {}))

    def in_words(self, value: str) -> str:
        """30,400 orders/s; base 296"""
        return f"{self.noun} {value}" if self.noun == self.unit else f"{value} {self.unit}"

    def capacity(self, record: Mapping[str, Any]) -> dict[str, float] | None:
        """The capacity that was found, as value, low, high."""
        found: dict[str, float] | None = record[f"capacity_{self.name}"]
        return found
