"""A benchmark declares its paper, what it varies, its roles, its figures, and how they are shown.

A benchmark is a file of messaging/benchmarks with a BENCHMARK; nothing else is edited, and the file's name is the
benchmark's. Its options become options of `exchange bench NAME`. A *point* is what one cell varies besides the
transport, as {"size_bytes": 64}; a *cell* is a point over a transport. Each repeat of a cell has links, queues and
processes of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import click

from exchange.words import counted
from exchange_simulation.messaging.roles import Links, Role, RoleResult
from transports.base import Pattern
from transports.declaration import BrokerServer
from transports.registry import has_broker

QUICK_HELP = "Fewer sizes and messages, three repeats: to see how it looks."

RATE, MAX = "rate_per_s", "max"
"""A point's key for its rate, if `--rate` names any, and the value that means as fast as it goes."""
SECONDS, QUICK_SECONDS, LEAST_AT_A_RATE = 5.0, 1.0, 100
"""Seconds for which messages are offered at a rate, and the fewest messages, for which a low rate takes longer."""
LEAST_MESSAGES = 64
Settings = Mapping[str, Any]
"""Values of the command's options: transport, sizes, count, quick, ..., and the benchmark's own."""
Point = Mapping[str, Any]
Figures = dict[str, float]
Results = Mapping[str, RoleResult]
"""Results of a cell's roles, by name."""


@dataclass(frozen=True)
class Cell:
    transport: str
    point: Point
    settings: Settings
    times_longer: int = 1
    """Multiplies the default number of messages, or the sample; more than 1 once a measurement was too short."""

    @property
    def size(self) -> int:
        return int(self.point["size_bytes"])

    @property
    def has_broker(self) -> bool:
        return has_broker(self.transport)

    @property
    def rate_per_s(self) -> float | None:
        """The rate at which each publisher's messages fall due; None is as fast as it goes."""
        rate = self.point.get(RATE, MAX)
        return None if rate == MAX else float(rate)

    @property
    def sample_s(self) -> float:
        """How long replies are counted, where that is what the user sets."""
        return float(self.settings["sample_s"]) * self.times_longer

    def count(self, counts: Counts, size: int | None = None) -> int:
        """Number of messages: what the user asked for, or what suits size and transport, or what a rate needs."""
        asked_for: int | None = self.settings.get("count")
        if self.rate_per_s is not None:
            return asked_for or messages_at(self.rate_per_s, self.settings)
        most = counts.of(size or self.size, self.has_broker, bool(self.settings.get("quick")))
        return asked_for or self.times_longer * most

    def __str__(self) -> str:
        """The transport and the point in words.

        For example: amqp, 64 B, 4 pairs
        """
        return ", ".join([self.transport, *(value_in_words(name, value) for name, value in self.point.items())])


def messages_at(rate_per_s: float, settings: Settings) -> int:
    """How many messages are offered at a rate."""
    seconds = settings.get("seconds") or (QUICK_SECONDS if settings.get("quick") else SECONDS)
    return max(LEAST_AT_A_RATE, round(rate_per_s * seconds))


def known_s(cell: Cell) -> float:
    """How long a cell lasts by its settings: messages at a rate, warm-up and sample. A flood's length is not known."""
    if cell.rate_per_s is not None:
        return (cell.settings.get("count") or messages_at(cell.rate_per_s, cell.settings)) / cell.rate_per_s
    return sum(cell.settings.get(name) or 0.0 for name in ("warm_up_s", "sample_s", "duration_s"))


def value_in_words(name: str, value: Any) -> str:
    """A point's value with its unit, as in: 64 B; 4 pairs; match scan."""
    if name.endswith("_bytes"):
        return size_in_words(value)
    if name == RATE:
        return "as fast as it goes" if value == MAX else f"{value:,}/s"
    return counted(value, name) if isinstance(value, int) else f"{name} {value}"


def size_in_words(size: int) -> str:
    """A size in the largest unit that gives a whole number: 1 B, 4 KiB, 1 MiB, but 1,000 B."""
    for unit, factor in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size >= factor and size % factor == 0:
            return f"{size // factor} {unit}"
    return f"{size:,} B"


@dataclass(frozen=True)
class Counts:
    """The default number of messages: smaller for large messages, and smaller over a broker."""

    broker: int = 100_000
    brokerless: int = 2_000_000
    total_bytes: int = 1 << 28

    def of(self, size: int, has_broker: bool, quick: bool) -> int:
        """A quick run has a tenth; no run has fewer than LEAST_MESSAGES."""
        most = min(self.broker if has_broker else self.brokerless, self.total_bytes // size)
        return max(LEAST_MESSAGES, most // 10 if quick else most)


@dataclass(frozen=True)
class Column:
    """A column of the table: a figure under a title."""

    name: str
    title: str
    with_interval: bool = False
    exact: bool = False
    """Print every digit, in the terminal, too."""


@dataclass(frozen=True)
class Plot:
    """A drawing of the page: `figure` against `x` of the point, a line for each transport; axes are logarithmic.

    Points that differ in more than x have a line for each of the other values, too.
    """

    title: str
    figure: str
    unit: str
    x: str = "size_bytes"
    x_unit: str = ""
    """By default the last word of x."""
    caption: str = ""
    linear: bool = False
    """Both axes are linear, from zero."""
    log_y: bool = False
    """The figure's axis is logarithmic even if `linear` is set."""
    where: Mapping[str, Any] = field(default_factory=dict)
    """Draw only the points that hold this."""
    beside: Sequence[Published] = ()
    """The paper's values, as levels or points of other hardware."""
    series: Mapping[str, str] = field(default_factory=dict)
    """Draws several figures, each a line of its own: names of lines by figure; `figure` then names them all."""


@dataclass(frozen=True)
class Published:
    """A value that the paper prints."""

    what: str
    value: str
    level: float | None = None
    """A horizontal line in a plot."""
    points: Sequence[tuple[float, float]] = ()
    """A line in a plot, named `what`."""
    figure: str = ""
    """Our figure of the same thing, which the page puts beside it."""
    where: Mapping[str, Any] = field(default_factory=dict)
    """Our figure is that of the points that hold this."""


@dataclass(frozen=True)
class Makes:
    """A figure, table or experiment of the paper that a benchmark makes."""

    item: str
    what: str
    options: str
    """After `exchange bench NAME`."""
    but: str = ""
    """Differences from the paper."""


def on_gige(item: str, what: str, options: str) -> Makes:
    """A figure of which one curve is of 1 Gigabit Ethernet."""
    but = "its 1 GigE, emulated; its IPoIB and SDP take InfiniBand: --network local stands in"
    return Makes(item, what, f"--transport amqp --network gige {options}", but)


@dataclass(frozen=True, kw_only=True)
class Scale:
    """The option that `exchange capacity` turns up, and what it means to hold."""

    option: str
    start: int
    most: int
    ceiling: str
    """The highest value in words."""
    columns: Sequence[str]
    """Figures of a probe that its table shows."""
    objective: Callable[[Settings], str] | None = None
    """The objective that holds if a cell's answer is right; None if the user gives the objective."""
    strain: Callable[[Cell, Results], float | None] = lambda _cell, _results: None
    """The worst figure divided by its bound; None if too little was measured to judge."""
    whole: bool = True
    unit: str = ""


def by_size(settings: Settings) -> list[Point]:
    """A point for each of `--sizes`."""
    return [{"size_bytes": size} for size in settings["sizes"]]


def by_size_and(name: str) -> Callable[[Settings], list[Point]]:
    """A point for each of `--sizes` with each of another option's numbers."""
    return lambda settings: [{**point, name: number} for point in by_size(settings) for number in settings[name]]


@dataclass(frozen=True, kw_only=True)
class BenchmarkDefinition:
    name: str = ""
    """The file's name, filled in by `benchmark_of`."""
    about: str
    """One line: what flows from whom to whom."""
    paper: str
    """Which paper, and where in it."""
    points: Callable[[Settings], Sequence[Point]] = by_size
    roles: Callable[[Cell, Links], list[Role]]
    """A cell's roles, receivers before senders. Opens nothing, since the rig first counts the roles of all cells."""
    figures: Callable[[Cell, Results], Figures]
    """A figure that could not be measured is left out."""
    judge: Callable[[Cell, Results], list[str]]
    """Sentences on what is wrong with the answer."""
    columns: Sequence[Column]
    plots: Sequence[Plot] = ()
    derived: Callable[[Sequence[dict[str, Any]]], Sequence[dict[str, Any]]] = lambda _rows: ()
    """Rows made of others, as a peak over some of them, for drawings and for what the paper printed."""
    series: Sequence[Plot] = ()
    """Drawings over the seconds of a cell: of machine.py's figures, which are measured only for these."""
    published: Sequence[Published] = ()
    makes: Sequence[Makes] = ()
    options: Sequence[click.Option] = ()
    transports: str = "amqp,zeromq"
    """The default of `--transport`."""
    summary: Callable[[Sequence[dict[str, Any]]], Sequence[str]] = lambda _rows: ()
    """Sentences that sum the rows up."""
    paced: bool = False
    """It takes `--rate`: its publishers can send at a fixed rate, as `cell.rate_per_s` says."""
    saturated: Callable[[Cell, Results], list[str]] = lambda _cell, _results: []
    """Sentences if a rate was not kept; the answer may be right all the same."""
    unsupported: Callable[[Cell], str | None] = lambda _cell: None
    """A sentence if the transport lacks something for a cell, which is then left out."""
    prepare: Callable[[Cell, Sequence[Role]], None] = lambda _cell, _roles: None
    """Puts what a cell needs in place before any role opens its links."""
    meanwhile: Callable[[Cell, Sequence[Role], BrokerServer | None], AbstractContextManager[None]] = lambda *_: (
        nullcontext()
    )
    """A context around the roles' work, in the launcher; it may do something to the broker's server."""
    patterns: Callable[[Cell], Sequence[Pattern]] = lambda _cell: ()
    """Patterns of the links that are not pairs."""
    instead: Callable[[Settings], bool] = lambda _settings: False
    """Does what the options ask for in place of measuring, as to print a plan; returns whether it did anything."""
    scale: Scale | None = None
    """None if its load cannot be turned up."""
    repeats: int = 6
    """The default of `--repeats`; six are the fewest with which two transports can be told apart beyond chance."""
    quick: Mapping[str, Any] = field(default_factory=dict)
    """Values that `--quick` puts in place of the defaults."""
    quick_help: str = QUICK_HELP
    lacks: Collection[str] = ()
    """Shared options that the benchmark does not take."""
