"""Numbers with their nouns."""

from __future__ import annotations


def noun(number: int, plural: str) -> str:
    """The noun without its s where the number is 1: one order, two orders."""
    return plural.removesuffix("s") if number == 1 else plural


def counted(number: int, plural: str) -> str:
    """The number with its noun: 1 order, 2,000 orders."""
    return f"{number:,} {noun(number, plural)}"


def each_of(pairs: int) -> str:
    """The words before the load of each pair; none for one pair."""
    return f", {pairs} pairs, each" if pairs > 1 else ""
