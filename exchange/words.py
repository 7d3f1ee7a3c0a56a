"""Numbers with their nouns, and text that is safe to print."""

from __future__ import annotations

import re

UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters but tab and line break, those that turn the direction of a line, and bytes that are no UTF-8."""


def printable(text: str) -> str:
    """Return the text with unprintable characters as escapes.

    A terminal would obey them, and JSON cannot hold all of them.
    """
    if text.isprintable():
        return text
    return UNPRINTABLE.sub(lambda match: ascii(match[0])[1:-1], text)


def is_utf8(text: str) -> bool:
    """Return whether the text can be encoded. A folder's name holds surrogates if its bytes are no UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def noun(number: int, plural: str) -> str:
    """Return the noun of this number: without its s if the number is 1. For example: order, orders"""
    return plural.removesuffix("s") if number == 1 else plural


def counted(number: int, plural: str) -> str:
    """Return the number with its noun. For example: 1 order, 2,000 orders"""
    return f"{number:,} {noun(number, plural)}"


def participants_clause(pairs: int, gateways: int, engines: int = 1) -> str:
    """Return the clause that precedes the load; empty for one pair with one gateway.

    For example: ", 3 pairs, each", whose load is each pair's; ", 4 gateways,", whose load is that of all;
    ", 4 gateways, 2 engines,".
    """
    clause = ""
    if gateways > 1:
        clause += f", {gateways} gateways"
    if engines > 1:
        clause += f", {engines} engines"
    if clause:
        return f"{clause},"
    return f", {pairs} pairs, each" if pairs > 1 else ""
