"""What a benchmark declares: its name and paper, what it varies, who plays, what its figures are, how they are shown.

A benchmark is a file of experiments/bench/benchmarks with a BENCHMARK; nothing else is edited. Its options become
options of `exchange bench NAME`. A *point* is what one cell varies besides the transport, as {"size_bytes": 64}; a
*cell* is a point over a transport. Each repeat of a cell has links, queues and processes of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from transports.pattern import Pattern
from transports.registry import scheme_of, transport_of

if TYPE_CHECKING:
    import click

    from messaging.places import Places
    from messaging.roles import Role, Told

Asked = Mapping[str, Any]
"""What the user asked for, by option: transport, sizes, count, quick, ..., and the benchmark's own."""
Point = Mapping[str, Any]
Figures = dict[str, float]


@dataclass(frozen=True)
class Cell:
    transport: str
    point: Point
    asked: Asked

    @property
    def size(self) -> int:
        return int(self.point["size_bytes"])

    @property
    def has_broker(self) -> bool:
        scheme = scheme_of(self.transport)
        return transport_of(scheme).places[scheme] == "broker"

    def count(self, counts: Counts) -> int:
        """Messages: as many as were asked for, or what suits size and transport."""
        asked: int | None = self.asked.get("count")
        return asked or counts.of(self.size, self.has_broker, bool(self.asked.get("quick")))


@dataclass(frozen=True)
class Counts:
    """How many messages there are where the user did not say: fewer of large ones, and of those that are slow."""

    broker: int = 100_000
    brokerless: int = 2_000_000
    total_bytes: int = 1 << 28
    least: int = 64
    quick: int = 10
    """A quick run has so many times fewer."""

    def of(self, size: int, has_broker: bool, quick: bool) -> int:
        most = self.broker if has_broker else self.brokerless
        less = self.quick if quick else 1
        return max(self.least, min(most, self.total_bytes // size) // less)


@dataclass(frozen=True)
class Column:
    """Of the table: a figure, or what the point holds, under a title."""

    name: str
    title: str
    with_interval: bool = False
    exact: bool = False
    """Every digit in the terminal, too."""


@dataclass(frozen=True)
class Plot:
    """A figure of the page: `figure` against `x` of the point, a line for each transport; axes are logarithmic.

    Where the points differ in more than x there is a line for each of those, too.
    """

    title: str
    figure: str
    unit: str
    x: str = "size_bytes"
    x_unit: str = "bytes"
    caption: str = ""
    linear: bool = False
    """Both axes, from zero."""
    log_y: bool = False
    """That of the figure is logarithmic all the same."""
    where: Mapping[str, Any] = field(default_factory=dict)
    """Of the points those that hold this."""
    beside: Sequence[Published] = ()
    """What the paper printed of this, as levels or points of other hardware."""


@dataclass(frozen=True)
class Published:
    """A value that the paper prints; `figure` and `at` say which of ours stands beside it, where there is one."""

    what: str
    value: str
    figure: str = ""
    at: Mapping[str, Any] = field(default_factory=dict)
    level: float | None = None
    """To be drawn in a plot of that figure."""
    points: Sequence[tuple[float, float]] = ()
    """The same, as a line of `what`."""


@dataclass(frozen=True)
class Benchmark:
    name: str
    about: str
    """One line: what flows from whom to whom."""
    paper: str
    """Which, and where in it."""
    points: Callable[[Asked], Sequence[Point]]
    roles: Callable[[Cell, Places], list[Role]]
    """Receivers before senders. Does nothing besides: how many a cell has is asked before any is measured."""
    figures: Callable[[Cell, Mapping[str, Told]], Figures]
    judge: Callable[[Cell, Mapping[str, Told]], list[str]]
    """What is wrong with the answer, as sentences; see experiments/bench/answer.py."""
    columns: Sequence[Column]
    plots: Sequence[Plot] = ()
    published: Sequence[Published] = ()
    options: Sequence[click.Option] = ()
    transports: str = "amqp,zeromq"
    """By default."""
    in_short: Callable[[Sequence[dict[str, Any]]], Sequence[str]] = lambda _rows: ()
    """What its rows say together, as sentences."""
    lacking: Callable[[Cell], str | None] = lambda _cell: None
    """What the transport has nothing for, as a sentence: such a cell is left out."""
    prepare: Callable[[Cell, Sequence[Role]], None] = lambda _cell, _roles: None
    """Puts there what is to be there before any role opens its links."""
    patterns: Callable[[Cell], Sequence[Pattern]] = lambda _cell: ()
    """Of its links, where they are no pairs."""
    repeats: int = 5
    """By default."""
    quick: Mapping[str, Any] = field(default_factory=dict)
    """What `--quick` asks for where the user does not."""
