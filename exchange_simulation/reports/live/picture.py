"""A run's last minute as lines of text: headline, and for each figure its newest value, a graph, the graph's scale."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from rich.text import Text

from exchange.second_columns import COLUMNS, Unit
from exchange.settings import RunSettings
from exchange.words import pairs_clause
from exchange_simulation.reports.formats.numbers import rate_text
from exchange_simulation.reports.formats.times import duration_in_words
from exchange_simulation.reports.live.figures import SECONDS, Figures
from transports.registry import scheme_of

LABEL, NOW, TOP = 9, 5, 4
"""Characters of a row beside its graph."""
WIDTH = LABEL + NOW + 1 + SECONDS + 1 + TOP
BLOCKS = "▁▂▃▄▅▆▇█"
PLAIN = "_.:-=+*#"
"""The blocks of a terminal whose encoding lacks BLOCKS."""
UNITS = ((1e9, "G"), (1e6, "M"), (1e3, "k"), (0.0, ""))

Rows = dict[str, str]
"""The labels of a group's rows, by the name of the figure."""
MESSAGES = "orders and answers a second"
CORES = "cores in use"


def groups(is_scheduled: bool) -> dict[str, Rows]:
    """Return the rows of each group by its title. Without a schedule there is no lag."""
    clock, since = ("due", "due") if is_scheduled else ("handed_over", "handing over")
    times = f"us from {since}"
    rows: dict[str, Rows] = {MESSAGES: {}, times: {}, CORES: {}}
    for column in COLUMNS:
        if not column.live or (column.needs_schedule and not is_scheduled):
            continue
        if column.unit is Unit.TIME:
            title = times
        elif column.unit is Unit.CORES:
            title = CORES
        else:
            title = MESSAGES
        rows[title][column.figure.format(clock=clock)] = column.live
    return rows


class Headline:
    """The first line: what runs, and how far it is."""

    def __init__(self, settings: RunSettings) -> None:
        self._settings = settings
        per_s = settings.orders_per_s
        orders_a_pair = settings.orders if per_s is None else settings.order_limit
        self._of_total = " orders" if orders_a_pair is None else f" of {settings.pairs * orders_a_pair:,} orders"
        offered = "as fast as it goes" if per_s is None else f"at {rate_text(per_s)} orders/s"
        self._load = f"{scheme_of(settings.transport)}{pairs_clause(settings.pairs)} {offered}"

    @property
    def before(self) -> str:
        return f"{self._load}: the components get ready"

    def at(self, answered: int, elapsed_s: float) -> str:
        left = left_s(self._settings, answered, elapsed_s)
        until_end = "" if left is None else f", {duration_in_words(left)} left"
        return f"{self._load}: {answered:,}{self._of_total} answered{until_end}"

    @property
    def at_the_end(self) -> str:
        return f"{self._load}: ended"


def left_s(settings: RunSettings, answered: int, elapsed_s: float) -> float | None:
    """Return the seconds until the end, at the pace so far, or by the clock if that is earlier; None if not known."""
    ends: list[float] = []
    if answered and elapsed_s > 0:
        ends.append((settings.pairs * settings.order_limit - answered) * elapsed_s / answered)
    if settings.duration_s is not None:
        ends.append(settings.duration_s - elapsed_s)
    return max(min(ends), 0.0) if ends else None


def picture(headline: str, figures: Figures, is_scheduled: bool, columns: int = WIDTH, blocks: str = BLOCKS) -> Text:
    """Return the picture, at most `columns` wide: a narrow terminal shows fewer seconds, the newest ones."""
    seconds = min(max(columns - (WIDTH - SECONDS), 1), SECONDS)
    text = Text(headline, no_wrap=True, overflow="crop")
    for title, rows in groups(is_scheduled).items():
        # "0 to" stands above the scales of all groups.
        heading = f"{title:<{WIDTH - SECONDS - TOP + seconds}}0 to" if title == MESSAGES else title
        text.append(f"\n{heading}", "bold")
        for row in _rows(rows, figures, seconds, blocks):
            text.append_tokens(row)
    return text


def _rows(rows: Rows, figures: Figures, seconds: int, blocks: str) -> Iterator[list[tuple[str, str | None]]]:
    """Yield the tokens of each row. A broker has one only if it was measured."""
    for name, label in rows.items():
        if label == "broker" and name not in figures.minutes:
            continue
        values = figures.minutes[name].until(figures.newest, seconds)
        top = max((value for value in values if value is not None), default=None)
        now = "-" if values[-1] is None else short(values[-1], NOW)
        yield [
            (f"\n{label:<{LABEL}}{now:>{NOW}} ", None),
            (graph(values, top or 0.0, blocks), "cyan"),
            (f" {'' if top is None else short(top, TOP):>{TOP}}", "dim"),
        ]


def graph(values: Sequence[float | None], top: float, blocks: str = BLOCKS) -> str:
    """Return a block for each value, from 0, the lowest, to `top`; a blank for None, which was not measured."""
    return "".join(" " if value is None else blocks[_height(value, top)] for value in values)


def _height(value: float, top: float) -> int:
    return min(max(math.ceil(len(BLOCKS) * value / top) - 1, 0), len(BLOCKS) - 1) if top > 0 else 0


def short(value: float, characters: int) -> str:
    """Return a number in four characters or more: whole if it fits, else with three digits at most.

    For example: 0.69, 8,000, 19.4k, 2.01M
    """
    rounded = float(f"{value:.3g}")
    whole = f"{value:,.0f}"
    if rounded >= 100 and len(whole) <= characters:
        return whole
    unit, name = next((unit, name) for unit, name in UNITS if rounded >= unit)
    digits = rounded / (unit or 1.0)
    before_point = len(f"{digits:.0f}")
    decimals = min(3, characters - len(name) - 1) - before_point
    return f"{digits:.{max(decimals, 0)}f}{name}"
