"""Numbers with their nouns."""

from __future__ import annotations


def noun(number: int, plural: str) -> str:
    """One order, two orders."""
    return plural.removesuffix("s") if number == 1 else plural


def counted(number: int, plural: str) -> str:
    return f"{number:,} {noun(number, plural)}"
