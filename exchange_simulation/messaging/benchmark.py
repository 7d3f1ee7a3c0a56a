"""A benchmark declares its paper, what it varies, its roles, its figures, and how they are shown.

A benchmark is a file of messaging/benchmarks with a BENCHMARK; nothing else is edited, and the file's name is the
benchmark's. Its options become options of `exchange bench NAME`. Each repeat of a cell (cell.py) has links, queues and
processes of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import click

from exchange.json_records import Record
from exchange_simulation.messaging.cell import Cell, Counts, Figures, Results
from exchange_simulation.messaging.paper import Published
from exchange_simulation.messaging.point import Point, Settings, by_size
from exchange_simulation.messaging.presentation import Column, Plot
from exchange_simulation.messaging.roles import Links, Role
from transports.base import Pattern
from transports.declaration import BrokerServer

QUICK_HELP = "Fewer sizes and messages, three repeats: to see how it looks."


def no_reasons(_cell: Cell, _results: Results) -> list[str]:
    """The rule of a benchmark without rates, which nothing can fall short of."""
    return []


@dataclass(frozen=True, kw_only=True)
class CapacityScale:
    """The option whose value `exchange capacity` raises, and the objective that a probe must meet."""

    option: str
    start: int
    highest: int
    ceiling_in_words: str
    columns: Sequence[str]
    """Figures of a probe that the table of the search shows."""
    objective: Callable[[Settings], str] | None = None
    """Words for the benchmark's own objective, which a cell with a right answer meets; None if the user gives one."""
    strain: Callable[[Cell, Results], float | None] = lambda _cell, _results: None
    """The worst figure divided by its bound; None if too little was measured to judge."""
    is_whole: bool = True
    """The option takes whole numbers only."""
    unit: str = ""


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
    """Returns sentences about what is wrong with the answer."""
    columns: Sequence[Column]
    plots: Sequence[Plot] = ()
    derived_rows: Callable[[Sequence[dict[str, Any]]], Sequence[dict[str, Any]]] = lambda _rows: ()
    """Makes further rows from the measured ones, as a peak over some rows; plots and published values use them."""
    plots_over_time: Sequence[Plot] = ()
    """Plots of the processors' and the network's figures (messaging/machine.py) by second.

    These figures are sampled only for a benchmark with such plots.
    """
    published: Sequence[Published] = ()
    options: Sequence[click.Option] = ()
    transports: str = "amqp,zeromq"
    """The default of `--transport`."""
    summary_sentences: Callable[[Sequence[dict[str, Any]]], Sequence[str]] = lambda _rows: ()
    flood_s: Callable[[Cell], float] = Counts().flood_s
    """About how long a cell takes that sends its messages as fast as it can, for the plan; not called for others."""
    takes_rate: bool = False
    """The benchmark takes `--rate`: its publishers, or those that ask, can be offered a load, as `cell.load` says."""
    saturation_reasons: Callable[[Cell, Results], list[str]] = no_reasons
    """Returns sentences if a rate was not kept; the answer may be right all the same."""
    step_figures: Callable[[Cell, Results], list[Record]] = lambda _cell, _results: []
    """The figures of each step of a load over time: `step`, the step as the user typed it, and `figures`."""
    why_unsupported: Callable[[Cell], str | None] = lambda _cell: None
    """Returns a sentence if the transport lacks something for a cell; the cell is then left out."""
    prepare: Callable[[Cell, Sequence[Role]], None] = lambda _cell, _roles: None
    """Puts what a cell needs in place before any role opens its links."""
    around_roles: Callable[[Cell, Sequence[Role], BrokerServer | None], AbstractContextManager[None]] = lambda *_: (
        nullcontext()
    )
    """A context around the roles' work, in the launcher; for example, the context restarts the broker's server."""
    patterns: Callable[[Cell], Sequence[Pattern]] = lambda _cell: ()
    """Patterns of the links that are not pairs."""
    run_without_measuring: Callable[[Settings], bool] = lambda _settings: False
    """Runs an option that replaces the measurement, as `--plan`, which prints; returns False if there is none."""
    scale: CapacityScale | None = None
    """None if `exchange capacity` cannot raise the benchmark's load."""
    repeats: int = 6
    """The default of `--repeats`; with fewer than six, two transports cannot be told apart beyond chance."""
    quick_values: Mapping[str, Any] = field(default_factory=dict)
    """Values that `--quick` puts in place of the defaults."""
    quick_help: str = QUICK_HELP
    options_left_out: Collection[str] = ()
    """Shared options that the benchmark does not take."""
