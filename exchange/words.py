"""Numbers with their nouns."""

from __future__ import annotations


def noun(number: int, plural: str) -> str:
    """One order, two orders."""
    return plural.removesuffix("s") if number == 1 else plural


def counted(number: int, plural: str) -> str:
    return f"{number:,} {noun(number, plural)}"


def each_of(pairs: int) -> str:
    """What is said before what each pair is offered; of one alone it goes without saying."""
    return f", {pairs} pairs, each" if pairs > 1 else ""
