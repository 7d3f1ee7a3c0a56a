"""The quantity that a search for a capacity raises."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class LoadAxis:
    """The quantity that a search for a capacity raises: orders a second, or the scale of a benchmark.

    `name` is part of the record's fields, as in capacity_orders_per_s. `noun` and `unit` are for sentences; a quantity
    without a unit repeats its noun as unit.
    """

    name: str = "orders_per_s"
    noun: str = "rate"
    unit: str = "orders/s"
    ceiling: str = "the generator's own ceiling"
    """Words for the highest value that can be offered."""
    whole: bool = False
    """Only whole numbers can be offered."""

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> LoadAxis:
        """Return a record's axis. Records of older versions have no axis: they are about the exchange, in orders/s."""
        return cls(**record.get("axis", {}))

    def in_words(self, value: str) -> str:
        """Return a value with its unit, or after its noun if there is no unit.

        For example: 30,400 orders/s, or base 296
        """
        has_unit = self.unit != self.noun
        if has_unit:
            return f"{value} {self.unit}"
        return f"{self.noun} {value}"

    def capacity(self, record: Mapping[str, Any]) -> dict[str, float] | None:
        """Return the capacity, as value, low, high; None if no edge was found."""
        capacity: dict[str, float] | None = record[f"capacity_{self.name}"]
        return capacity
