"""The columns of a second of a run, declared once: for the terminal, the page, both live views and Spark's tables.

A row of a second is a dictionary of figures by name; exchange.seconds and exchange.second_figures make it. A new
column is a new line of COLUMNS. A new count is a field of the traffic record in exchange/records.py too, and the
gateway counts it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from exchange.meters import THROUGHPUT_METERS


class Unit(Enum):
    """The unit of a column."""

    RATE = "messages/s by the gateway's clock"
    COUNT = "messages, a field of a gateway's traffic records"
    METER = "messages/s by a meter"
    TIME = "microseconds, of one clock's completion times"
    CORES = "processors in use by a role"


@dataclass(frozen=True)
class SecondColumn:
    """A column, with its title in each place; it is not shown where its title is empty."""

    figure: str
    """The figure's name in a row. {clock} stands for due; for handed_over, if the run has no schedule."""
    unit: Unit
    count: str = ""
    """For a rate: the count whose growth makes the rate."""
    terminal: str = ""
    """Its title in the table after a run. A first line is the heading of this column and of those to its right."""
    page: str = ""
    """Its title on the run's page."""
    live: str = ""
    """Its title in the window of `exchange run --live`, and in the browser."""
    followed: str = ""
    """Its title in the table of seconds that Spark follows, with `exchange run --live-spark`."""
    in_spark: bool = True
    """Whether Spark's tables have the column. They have all times, also those without a column here."""
    needs_schedule: bool = False
    """Whether a run at rate max lacks the column: all of its completion times count from the hand-over."""


METERS = {int(meter): f"{meter.name.lower()}_per_s" for meter in THROUGHPUT_METERS}
"""The figure of each throughput meter."""

COLUMNS = (
    SecondColumn("offered_orders_per_s", Unit.RATE, terminal="orders/s\noffered", page="offered", needs_schedule=True),
    SecondColumn(
        "orders_per_s", Unit.RATE, count="orders_sent", terminal="\nsent", page="sent", live="sent", followed="sent"
    ),
    SecondColumn(
        "answered_orders_per_s",
        Unit.RATE,
        count="orders_answered",
        terminal="\nanswered",
        page="answered",
        live="answered",
        in_spark=False,
    ),
    SecondColumn("answers_per_s", Unit.RATE, count="messages_received", live="answers", in_spark=False),
    SecondColumn("orders_sent", Unit.COUNT),
    SecondColumn("orders_answered", Unit.COUNT, followed="answered"),
    SecondColumn("messages_received", Unit.COUNT),
    *(SecondColumn(figure, Unit.METER) for figure in METERS.values()),
    SecondColumn(
        "{clock}_p50_us", Unit.TIME, terminal="us from {clock}\np50", page="p50", live="p50", followed="p50 us"
    ),
    SecondColumn("{clock}_p99_us", Unit.TIME, terminal="\np99", page="p99", live="p99", followed="p99 us"),
    SecondColumn("{clock}_max_us", Unit.TIME, terminal="\nmax", page="max", live="max", followed="max us"),
    SecondColumn(
        "handed_over_p50_us", Unit.TIME, terminal="handover\np50", page="p50 handed over", needs_schedule=True
    ),
    SecondColumn("handed_over_p99_us", Unit.TIME, page="p99 handed over", needs_schedule=True),
    SecondColumn("lag_p99_us", Unit.TIME, page="lag p99", live="lag p99", followed="lag p99", needs_schedule=True),
    SecondColumn(
        "gateway_cpu_cores",
        Unit.CORES,
        terminal="cores\ngateway",
        page="gateway",
        live="gateway",
        followed="gateway",
    ),
    SecondColumn("engine_cpu_cores", Unit.CORES, terminal="\nengine", page="engine", live="engine", followed="engine"),
    SecondColumn("reporter_cpu_cores", Unit.CORES, live="reporter", in_spark=False),
    SecondColumn("broker_cpu_cores", Unit.CORES, live="broker", in_spark=False),
)
"""The columns, in the order in which they are shown. The terminal leaves out `lag p99`, which does not fit into 80
characters."""

COUNTS = tuple(column.figure for column in COLUMNS if column.unit is Unit.COUNT)
"""The counts of a traffic record."""
RATES = {column.count: column.figure for column in COLUMNS if column.count}
"""The rate that is made of each count."""


def spark_columns(unit: Unit) -> list[str]:
    """Return the figures in this unit that Spark's tables have."""
    return [column.figure for column in COLUMNS if column.unit is unit and column.in_spark]
