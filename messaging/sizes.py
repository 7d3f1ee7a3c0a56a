"""Message sizes as a user types them: `256`, `8,64,1KiB`, or `1B..1MiB`, which doubles from one to the other."""

from __future__ import annotations

import re
from typing import Any

import click

LARGEST = 1 << 20
"""The papers' largest message, and what every transport's buffers take."""
UNITS = {"": 1, "B": 1, "kB": 1_000, "KiB": 1 << 10, "MB": 1_000_000, "MiB": 1 << 20}
WRITTEN = re.compile(r"(\d+) ?([a-zA-Z]*)")


class BadSizes(ValueError):
    """A sentence: what was given, what is allowed."""


def sizes_of(text: str) -> tuple[int, ...]:
    """Bytes, ascending. BadSizes where it is nonsense."""
    low, dots, high = text.partition("..")
    if dots:
        return _doubling(_size(low), _size(high), text)
    found = tuple(_size(part) for part in text.split(","))
    if list(found) != sorted(set(found)):
        raise BadSizes(f"{text!r} is not in order: give each size once, from small to large")
    return found


def _doubling(low: int, high: int, text: str) -> tuple[int, ...]:
    if low > high:
        raise BadSizes(f"{text!r} goes down: give the smaller size first")
    for end in (low, high):
        if end & (end - 1):
            raise BadSizes(f"{text!r}: a range doubles, so its ends are powers of two, and {end} is none")
    return tuple(low << step for step in range((high // low).bit_length()))


def _size(text: str) -> int:
    written = WRITTEN.fullmatch(text.strip())
    if written is None or written[2] not in UNITS:
        raise BadSizes(f"{text.strip()!r} is no size: give bytes, as 64, 1KiB or 1MiB")
    size = int(written[1]) * UNITS[written[2]]
    if not 1 <= size <= LARGEST:
        raise BadSizes(f"{text.strip()} is {size:,} bytes; a message has 1 to {LARGEST:,}")
    return size


def in_words(size: int) -> str:
    """1 B, 4 KiB, 1 MiB; 100 B, 1,000 B where it is no whole number of them."""
    for unit, factor in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size >= factor and size % factor == 0:
            return f"{size // factor} {unit}"
    return f"{size:,} B"


class Size(click.ParamType[int]):
    """`--size`."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            return value if isinstance(value, int) else _size(str(value))
        except BadSizes as error:
            self.fail(str(error), param, ctx)


class Sizes(click.ParamType[tuple[int, ...]]):
    """`--sizes`."""

    name = "sizes"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, ...]:
        if isinstance(value, tuple):
            return value
        try:
            return sizes_of(str(value))
        except BadSizes as error:
            self.fail(str(error), param, ctx)
