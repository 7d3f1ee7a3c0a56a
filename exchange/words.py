"""Numbers with their nouns, and text that is safe to print."""

from __future__ import annotations

import re

UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
"""Control characters but tab and line break, and the bytes of a name that is no UTF-8."""


def printable(text: str) -> str:
    """The text with unprintable characters as escapes: a terminal would obey them, and JSON cannot hold all of them."""
    return text if text.isprintable() else UNPRINTABLE.sub(lambda found: ascii(found[0])[1:-1], text)


def noun(number: int, plural: str) -> str:
    """The noun without its s where the number is 1: one order, two orders."""
    return plural.removesuffix("s") if number == 1 else plural


def counted(number: int, plural: str) -> str:
    """The number with its noun: 1 order, 2,000 orders."""
    return f"{number:,} {noun(number, plural)}"


def each_of(pairs: int) -> str:
    """The words before the load of each pair; none for one pair."""
    return f", {pairs} pairs, each" if pairs > 1 else ""
