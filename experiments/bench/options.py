"""Options that several benchmarks have."""

from __future__ import annotations

import math
from typing import Any

import click

from experiments.bench.sizes import Sizes


def sizes(default: str) -> click.Option:
    """`--sizes`."""
    return click.Option(["--sizes"], type=Sizes(), default=default, show_default=True, metavar="SIZE..SIZE",
                        help="Message sizes: a range that doubles, or a list, as 8,64,1KiB.")  # fmt: skip


SIZES = sizes("1B..1MiB")
COUNT = click.Option(["--count"], type=click.IntRange(2, 1 << 39),
                     help="Messages of each cell.  [default: fewer of large ones, and over a broker]")  # fmt: skip


class Numbers(click.ParamType[tuple[int, ...]]):
    """Whole numbers, from small to large: a list, as 1,2,4,8, or a range, as 1..8."""

    name = "numbers"

    def __init__(self, what: str, low: int, high: int) -> None:
        self._what, self._low, self._high = what, low, high

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, ...]:
        if isinstance(value, tuple):
            return value
        first, dots, last = str(value).partition("..")
        words = [first, last] if dots else str(value).split(",")
        if not all(word.strip().isdecimal() for word in words):
            self.fail(f"{value!r} is no list of {self._what}: give whole numbers, as 1,2,4,8, or 1..8", param, ctx)
        found = tuple(map(int, words))
        if list(found) != sorted(set(found)):
            self.fail(f"{value!r} is not in order: give each number once, from small to large", param, ctx)
        if not self._low <= found[0] <= found[-1] <= self._high:
            self.fail(f"{value!r}: {self._what} are {self._low:,} to {self._high:,}", param, ctx)
        return tuple(range(found[0], found[1] + 1)) if dots else found


class Seconds(click.FloatRange):
    """A range lets nan pass, which is neither below nor above."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        found: float = click.FLOAT.convert(value, param, ctx)
        if not math.isfinite(found):
            self.fail(f"{found} is no number of seconds: give {self.min:g} to {self.max:g}", param, ctx)
        return float(super().convert(found, param, ctx))
