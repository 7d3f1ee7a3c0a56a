"""A function for each view: (session, parameters) to rows. It reads views of the tables; its SQL is in NAME.sql."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from importlib.resources import files
from typing import TypeVar

from pyspark.sql import DataFrame, SparkSession

from spark.samples import SOURCE, numbered_seconds
from spark.tables.schemas import KEYS

NS_PER_S = 1_000_000_000
NS_PER_MS = 1_000_000
SHOWS_TABLES = re.compile(r"\bshow\b", re.IGNORECASE)
EVENT_COLUMNS = {
    "orders": "experiment string, run string, instrument int, sequence bigint, time_ns bigint, kind string, "
    "side string, volume int, reject_reason string, cancelled_volume int",
    "trades": "experiment string, run string, instrument int, sequence bigint, time_ns bigint, price int, volume int",
    "quotes": "experiment string, run string, instrument int, sequence bigint, time_ns bigint, bid int, ask int",
}
"""Tables of events that a run may lack, with the columns that the views over any events use of them."""


@dataclass(frozen=True, kw_only=True)
class GoldView:
    """A view: the function that makes its rows, and the tables that it reads."""

    rows_of: Callable[[SparkSession], DataFrame]
    tables: tuple[str, ...]
    takes_any: bool = False
    """Whether one of the tables is enough: those that are not there count as empty. Otherwise the view needs all."""

    def can_be_made(self, tables: Collection[str]) -> bool:
        """Return whether the view can be made, given the tables that are there."""
        are_there = [table in tables for table in self.tables]
        return any(are_there) if self.takes_any else all(are_there)


VIEWS: dict[str, GoldView] = {}
"""By name, which is that of the function."""
Function = TypeVar("Function", bound=Callable[..., DataFrame])


def _over(*tables: str) -> Callable[[Function], Function]:
    """Make a view over all of these tables of the function that follows."""

    def register(rows_of: Function) -> Function:
        VIEWS[rows_of.__name__] = GoldView(rows_of=rows_of, tables=tables)
        return rows_of

    return register


def _over_any_events(rows_of: Function) -> Function:
    """Make a view of the function over the tables of events that are there."""
    VIEWS[rows_of.__name__] = GoldView(rows_of=rows_of, tables=tuple(EVENT_COLUMNS), takes_any=True)
    return rows_of


@_over("runs", "summary")
def arms(spark: SparkSession) -> DataFrame:
    """Return a row for the repeats of each arm, with medians of their figures."""
    return _rows(spark, "arms")


@_over("arms")
def comparison(spark: SparkSession) -> DataFrame:
    """Return a row for each two arms that differ in one thing, with ratios of their figures. It reads `arms`."""
    return _rows(spark, "comparison")


@_over("sample")
def sample_seconds(spark: SparkSession) -> DataFrame:
    """Return a row for each second of each gateway of each run: `numbered_seconds` of all samples."""
    keys = (*KEYS, SOURCE)
    return numbered_seconds(spark.table("sample"), keys).orderBy(*KEYS, "second", SOURCE)


@_over_any_events
def bars_by_time(spark: SparkSession, every_ns: int = NS_PER_S) -> DataFrame:
    """Return a bar for each `every_ns` of an instrument in which anything happened."""
    return _rows(spark, "bars_by_time", every_ns=every_ns)


@_over("trades")
def bars_by_count(spark: SparkSession, trades: int = 1_000) -> DataFrame:
    """Return a bar for so many trades of an instrument."""
    return _rows(spark, "bars_by_count", trades=trades)


@_over("trades")
def bars_by_volume(spark: SparkSession, lots: int = 10_000) -> DataFrame:
    """Return a bar for so many lots that an instrument traded."""
    return _rows(spark, "bars_by_volume", lots=lots)


@_over("trades", "quotes")
def trade_quotes(spark: SparkSession, within_ns: int = NS_PER_S, horizon_ns: int = NS_PER_S) -> DataFrame:
    """Return each trade with the best prices before it, unless they are older than `within_ns`, and its spreads.

    The realised spread is taken `horizon_ns` after the trade; it is null if the run's events end before that.
    """
    return _rows(spark, "trade_quotes", within_ns=within_ns, horizon_ns=horizon_ns)


@_over_any_events
def market_stats(spark: SparkSession) -> DataFrame:
    """Return a row for each instrument of a run: messages by kind, orders a trade, spread, depth."""
    return _rows(spark, "market_stats")


@_over("trades")
def resample(spark: SparkSession, every_ns: int = NS_PER_S) -> DataFrame:
    """Return the price at the end of every interval from an instrument's first trade to its last, even if empty."""
    return _rows(spark, "resample", every_ns=every_ns)


@_over("trades", "orders", "sample")
def completion_by_activity(spark: SparkSession, every_ns: int = 10 * NS_PER_MS) -> DataFrame:
    """Return the sampled completion times of a run by quarter of the market's activity, in intervals of `every_ns`."""
    return _rows(spark, "completion_by_activity", every_ns=every_ns)


@_over("sample", "summary", "runs")
def samples(spark: SparkSession) -> DataFrame:
    """Return for each run the estimates from sampled orders beside the figures of all orders.

    The errors are null for a run with a warm-up, which is in the samples and not in the summary.
    """
    return _rows(spark, "samples")


def gold_views_over(tables: Collection[str]) -> list[str]:
    """Return the names of the views that can be made of these tables, and are no tables themselves."""
    return [name for name, view in VIEWS.items() if view.can_be_made(tables) and name not in tables]


def tables_used(statement: str, tables: Collection[str]) -> list[str]:
    """Return those of the tables that a statement may read: it names them, or a view over them, or lists tables.

    A name counts wherever it stands, as the start of a column's name, too: a table too many costs a moment.
    """
    if SHOWS_TABLES.search(statement):
        return list(tables)
    words = statement.lower()
    used = {name for name in tables if name in words}
    for name, view in VIEWS.items():
        if name in words and name not in tables:
            used.update(view.tables)
    return [name for name in tables if name in used]


def create_gold_views(spark: SparkSession, tables: Collection[str], statement: str | None = None) -> None:
    """Make each view whose tables are there; with a statement, only those that it names, since each takes a while."""
    for name in gold_views_over(tables):
        if statement is None or name in statement.lower():
            VIEWS[name].rows_of(spark).createOrReplaceTempView(name)


def statement_of(name: str, tables: Collection[str]) -> str:
    """Return the SQL of a view. One over any events gets tables without rows for those that are not among `tables`.

    If no table of events is there, the statement stays as it is, so that Spark says what is missing.
    """
    text = files("spark.gold").joinpath(f"{name}.sql").read_text()
    view = VIEWS[name]
    missing = [table for table in EVENT_COLUMNS if table not in tables]
    if not view.takes_any or not view.can_be_made(tables) or not missing:
        return text
    comments, begins_with_with, rest = text.partition("\nwith ")
    empty_tables = [f"{table} as ({_no_rows(EVENT_COLUMNS[table])})" for table in missing]
    return comments + begins_with_with + ",\n".join([*empty_tables, rest])


def _no_rows(columns: str) -> str:
    nulls = []
    for column in columns.split(", "):
        name, kind = column.split()
        nulls.append(f"cast(null as {kind}) as {name}")
    return f"select {', '.join(nulls)} where false"


def _rows(spark: SparkSession, name: str, **parameters: int) -> DataFrame:
    tables: set[str] = set()
    if VIEWS[name].takes_any:
        tables = {str(row.viewName) for row in spark.sql("show views").collect()}
    return spark.sql(statement_of(name, tables), args=parameters)
