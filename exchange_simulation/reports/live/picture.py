"""A run's last minute as lines of text: headline, and for each figure its newest value, a graph, the graph's scale."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from rich.text import Text

from exchange.second_columns import COLUMNS, Unit
from exchange.settings import RunSettings
from exchange.words import participants_clause
from exchange_simulation.reports.formats.numbers import ABSENT, rate_text
from exchange_simulation.reports.formats.times import duration_in_words
from exchange_simulation.reports.live.figures import SECONDS, Figures
from transports.registry import scheme_of

LABEL_WIDTH = 9
NEWEST_WIDTH = 5
"""The characters of a row's newest value."""
TOP_WIDTH = 4
"""The characters of the value at the top of a row's graph."""
WIDTH = LABEL_WIDTH + NEWEST_WIDTH + 1 + SECONDS + 1 + TOP_WIDTH
BLOCKS = "▁▂▃▄▅▆▇█"
ASCII_BLOCKS = "_.:-=+*#"
"""The blocks of a terminal whose encoding lacks BLOCKS."""
UNITS = ((1e9, "G"), (1e6, "M"), (1e3, "k"))
"""Units of large numbers, the largest first."""

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
        if not column.live_title or (column.needs_schedule and not is_scheduled):
            continue
        if column.unit is Unit.TIME:
            title = times
        elif column.unit is Unit.CORES:
            title = CORES
        else:
            title = MESSAGES
        rows[title][column.figure.format(clock=clock)] = column.live_title
    return rows


class Headline:
    """The first line: what runs, and how far it is."""

    def __init__(self, settings: RunSettings) -> None:
        self._settings = settings
        per_s = settings.orders_per_s
        orders_a_pair = settings.orders if per_s is None else settings.order_limit
        if orders_a_pair is None:
            self._of_total = " orders"
        else:
            self._of_total = f" of {settings.pairs * orders_a_pair:,} orders"
        offered = "as fast as it goes" if per_s is None else f"at {rate_text(per_s)} orders/s"
        participants = participants_clause(settings.pairs, settings.gateways, settings.engines)
        self._load = f"{scheme_of(settings.transport)}{participants} {offered}"

    @property
    def before_start(self) -> str:
        return f"{self._load}: the components get ready"

    def during(self, answered: int, elapsed_s: float) -> str:
        seconds_left = time_left_s(self._settings, answered, elapsed_s)
        until_end = "" if seconds_left is None else f", {duration_in_words(seconds_left)} left"
        return f"{self._load}: {answered:,}{self._of_total} answered{until_end}"

    @property
    def after_end(self) -> str:
        return f"{self._load}: ended"


def time_left_s(settings: RunSettings, answered: int, elapsed_s: float) -> float | None:
    """Return the seconds until the end, at the pace so far, or by the clock if that is earlier; None if not known."""
    ends_s: list[float] = []
    if answered and elapsed_s > 0:
        orders_left = settings.pairs * settings.order_limit - answered
        ends_s.append(orders_left * elapsed_s / answered)
    if settings.duration_s is not None:
        ends_s.append(settings.duration_s - elapsed_s)
    if not ends_s:
        return None
    return max(min(ends_s), 0.0)


def picture(headline: str, figures: Figures, is_scheduled: bool, columns: int = WIDTH, blocks: str = BLOCKS) -> Text:
    """Return the picture, at most `columns` wide: a narrow terminal shows fewer seconds, the newest ones."""
    width_beside_graph = WIDTH - SECONDS
    seconds = min(max(columns - width_beside_graph, 1), SECONDS)
    text = Text(headline, no_wrap=True, overflow="crop")
    for title, rows in groups(is_scheduled).items():
        heading = title
        if title == MESSAGES:  # "0 to" stands above the scales of all groups
            heading = title.ljust(width_beside_graph + seconds - TOP_WIDTH) + "0 to"
        text.append(f"\n{heading}", "bold")
        for row in _rows(rows, figures, seconds, blocks):
            text.append_tokens(row)
    text.append(f"\n{'':<{width_beside_graph - TOP_WIDTH - 1}}{time_axis(seconds)}", "dim")
    return text


def time_axis(seconds: int) -> str:
    """Return the line below graphs of this many seconds: when their first second was, and that the last one is now."""
    newest = "now"
    oldest = f"{seconds - 1} s ago"
    if seconds < len(oldest) + 1 + len(newest):
        return newest.rjust(seconds)
    return oldest + newest.rjust(seconds - len(oldest))


def _rows(rows: Rows, figures: Figures, seconds: int, blocks: str) -> Iterator[list[tuple[str, str | None]]]:
    """Yield the tokens of each row, each with its style. A broker has a row only if it was measured."""
    for name, label in rows.items():
        if label == "broker" and name not in figures.minutes:
            continue
        values = figures.minutes[name].until(figures.newest, seconds)
        measured = [value for value in values if value is not None]
        newest = ABSENT if values[-1] is None else short_number(values[-1], NEWEST_WIDTH)
        if measured:
            top = max(measured)
            scale = short_number(top, TOP_WIDTH)
        else:
            top = 0.0
            scale = ""
        yield [
            (f"\n{label:<{LABEL_WIDTH}}{newest:>{NEWEST_WIDTH}} ", None),
            (graph(values, top, blocks), "cyan"),
            (f" {scale:>{TOP_WIDTH}}", "dim"),
        ]


def graph(values: Sequence[float | None], top: float, blocks: str = BLOCKS) -> str:
    """Return a block for each value, from 0, the lowest, to `top`; a blank for None, which was not measured."""
    characters = []
    for value in values:
        characters.append(" " if value is None else blocks[_block_index(value, top)])
    return "".join(characters)


def _block_index(value: float, top: float) -> int:
    """Return the index of the block for a value: 0 for 0, the last one for `top`."""
    if top <= 0:
        return 0
    index = math.ceil(len(BLOCKS) * value / top) - 1
    return min(max(index, 0), len(BLOCKS) - 1)


def short_number(value: float, characters: int) -> str:
    """Return a number in four characters or more: whole if it fits, else with three digits at most.

    For example: 0.69, 8,000, 19.4k, 2.01M
    """
    rounded = float(f"{value:.3g}")
    whole = f"{value:,.0f}"
    if rounded >= 100 and len(whole) <= characters:
        return whole
    factor, unit = _unit_of(rounded)
    digits = rounded / factor
    digits_before_point = len(f"{digits:.0f}")
    most_digits = min(3, characters - len(unit) - len("."))
    decimals = max(most_digits - digits_before_point, 0)
    return f"{digits:.{decimals}f}{unit}"


def _unit_of(value: float) -> tuple[float, str]:
    """Return the largest unit that the value reaches: its factor and its letter; 1 and no letter below all units."""
    for factor, unit in UNITS:
        if value >= factor:
            return factor, unit
    return 1.0, ""
