"""Options that several benchmarks have."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import click

from messaging.sizes import Sizes
from runs.options import Listed, broker_options, json_option, results_option


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


timeout_option = click.option(
    "--timeout", "timeout_s", type=Seconds(0.1, 3600), default=10.0, show_default=True,
    help="How long nothing may come, seconds.",
)  # fmt: skip


def parameters(transports: str | None, own: Sequence[click.Parameter], repeats: int | None) -> list[click.Parameter]:
    """All options of a benchmark's command, its own among them; None is the default where benchmarks differ."""
    command = click.Command(None)
    for option in reversed((
        click.option("--transport", type=Listed(click.STRING), default=transports, show_default=transports is not None,
                     metavar="SCHEME[,...]", help="Over what, each once."),
        click.option("--repeats", type=click.IntRange(1, 10_000), default=repeats,
                     show_default=repeats is not None or "each benchmark's", help="How often each cell is measured."),
        click.option("--quick", is_flag=True, help="Fewer sizes and messages, three repeats: to see how it looks."),
        timeout_option,
        broker_options,
        results_option,
        click.option("--name", help="The folder in DIR.  [default: time and benchmark]"),
        json_option,
    )):  # fmt: skip
        command = option(command)
    transport, *common = command.params
    return [transport, *own, *common]
