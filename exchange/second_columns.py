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
    terminal_title: str = ""
    """Its title in the table after a run. A first line is the heading of this column and of those to its right."""
    page_title: str = ""
    """Its title on the run's page."""
    live_title: str = ""
    """Its title in the window of `exchange run --live`, and in the browser."""
    followed_title: str = ""
    """Its title in the table of seconds that Spark follows, with `exchange run --live-spark`."""
    in_spark: bool = True
    """Whether Spark's tables have the column. They have all times, also those without a column here."""
    needs_schedule: bool = False
    """Whether a run at rate max lacks the column: all of its completion times count from the hand-over."""


METERS = {int(meter): f"{meter.name.lower()}_per_s" for meter in THROUGHPUT_METERS}
"""The figure of each throughput meter."""

COLUMNS = (
    SecondColumn(
        "offered_orders_per_s", Unit.RATE, terminal_title="orders/s\noffered", page_title="offered", needs_schedule=True
    ),
    SecondColumn(
        "orders_per_s",
        Unit.RATE,
        count="orders_sent",
        terminal_title="\nsent",
        page_title="sent",
        live_title="sent",
        followed_title="sent",
    ),
    SecondColumn(
        "answered_orders_per_s",
        Unit.RATE,
        count="orders_answered",
        terminal_title="\nanswered",
        page_title="answered",
        live_title="answered",
        in_spark=False,
    ),
    SecondColumn("answers_per_s", Unit.RATE, count="messages_received", live_title="answers", in_spark=False),
    SecondColumn("orders_sent", Unit.COUNT),
    SecondColumn("orders_answered", Unit.COUNT, followed_title="answered"),
    SecondColumn("messages_received", Unit.COUNT),
    *(SecondColumn(figure, Unit.METER) for figure in METERS.values()),
    SecondColumn(
        "{clock}_p50_us",
        Unit.TIME,
        terminal_title="us from {clock}\np50",
        page_title="p50",
        live_title="p50",
        followed_title="p50 us",
    ),
    SecondColumn(
        "{clock}_p99_us", Unit.TIME, terminal_title="\np99", page_title="p99", live_title="p99", followed_title="p99 us"
    ),
    SecondColumn(
        "{clock}_max_us", Unit.TIME, terminal_title="\nmax", page_title="max", live_title="max", followed_title="max us"
    ),
    SecondColumn(
        "handed_over_p50_us",
        Unit.TIME,
        terminal_title="handover\np50",
        page_title="p50 handed over",
        needs_schedule=True,
    ),
    SecondColumn("handed_over_p99_us", Unit.TIME, page_title="p99 handed over", needs_schedule=True),
    SecondColumn(
        "lag_p99_us",
        Unit.TIME,
        page_title="lag p99",
        live_title="lag p99",
        followed_title="lag p99",
        needs_schedule=True,
    ),
    SecondColumn(
        "gateway_cpu_cores",
        Unit.CORES,
        terminal_title="cores\ngateway",
        page_title="gateway",
        live_title="gateway",
        followed_title="gateway",
    ),
    SecondColumn(
        "engine_cpu_cores",
        Unit.CORES,
        terminal_title="\nengine",
        page_title="engine",
        live_title="engine",
        followed_title="engine",
    ),
    SecondColumn("reporter_cpu_cores", Unit.CORES, live_title="reporter", in_spark=False),
    SecondColumn("broker_cpu_cores", Unit.CORES, live_title="broker", in_spark=False),
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
