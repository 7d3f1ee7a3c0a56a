"""Bars over time from the tables of events: partial bars of the rows, and one SQL statement that merges them.

    tables on this machine ──a kernel and numpy, a file a task──▶ partial bars: a row a stretch ─┐
    tables elsewhere ──PARTIAL_BARS, in SQL──▶ partial bars: a row an event ─────────────────────┴─BARS──▶ a row a bar

A stretch is a sequence of adjacent rows of a file: of one run, instrument and bar, with rising sequence numbers. Rows
need no order: an unsorted file has more stretches, and the bars are the same. Making stretches here takes a third of
the time that Spark takes to group all rows.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from exchange.compiled import kernel
from spark.dataset.folder import TablesFolder, experiment_of_file
from spark.errors import DatasetUnreadableError
from spark.sessions.partitions import each_number

PARTIAL_BARS = {
    "trades": """
        select experiment, run, instrument, time_ns - time_ns % {every_ns} as bar, sequence as first,
          price as open, price as high, price as low, price as close, volume, 1 as trades
        from trades where time_ns is not null""",
    "quotes": """
        select experiment, run, instrument, time_ns - time_ns % {every_ns} as bar, sequence as first,
          coalesce(ask - bid, 0) as spreads, if(ask - bid is null, 0, 1) as two_sided, bid, ask
        from quotes where time_ns is not null""",
    "orders": """
        select experiment, run, instrument, time_ns - time_ns % {every_ns} as bar, sequence as first, 1 as orders,
          if(side = 'bid', volume, 0) as bids, if(side = 'ask', volume, 0) as asks
        from orders where time_ns is not null""",
}
"""By table: a statement that makes a partial bar of each event. Spark and DuckDB take these statements, and BARS."""
BARS = """
with parts as (
  select experiment, run, instrument, bar,
    first as traded, open, high, low, close, volume, trades,
    null as quoted, null as spreads, null as two_sided, null as bid, null as ask,
    null as orders, null as bids, null as asks
  from partial_trades
  union all
  select experiment, run, instrument, bar,
    null as traded, null as open, null as high, null as low, null as close, null as volume, null as trades,
    first as quoted, spreads, two_sided, bid, ask,
    null as orders, null as bids, null as asks
  from partial_quotes
  union all
  select experiment, run, instrument, bar,
    null as traded, null as open, null as high, null as low, null as close, null as volume, null as trades,
    null as quoted, null as spreads, null as two_sided, null as bid, null as ask,
    orders, bids, asks
  from partial_orders
), bars as (
  select experiment, run, instrument, bar, min_by(open, traded) as open, max(high) as high, min(low) as low,
    max_by(close, traded) as close, coalesce(sum(volume), 0) as volume, coalesce(sum(trades), 0) as trades,
    sum(spreads) / nullif(sum(two_sided), 0) as spread, max_by(bid, quoted) as bid, max_by(ask, quoted) as ask,
    sum(orders) as orders, sum(bids) as bids, sum(asks) as asks
  from parts group by 1, 2, 3, 4
)
select /*+ repartition(1) */ experiment, run, instrument, bar / 1e9 as start_s, open, high, low, close, volume, trades,
  spread, bid, ask, orders, orders / nullif(trades, 0) as order_to_trade,
  sum(bids - volume) over so_far as bid_depth, sum(asks - volume) over so_far as ask_depth
from bars
window so_far as (partition by experiment, run, instrument order by bar)
order by experiment, run, instrument, start_s
"""
"""Depth is the lots that rest at the bar's end: a trade takes its volume from both sides.

One group of all three tables takes Spark four stages; three groups and two joins would take it seven. The hint is for
Spark alone: without the hint, Spark computes the bars twice, first to find out how to sort them in parts.
"""

Columns = dict[str, Any]
Places = NDArray[np.int64]
"""Numbers of rows."""
Numbers = NDArray[np.int64]
LONG = pa.int64()
INT = pa.int32()
TEXT = pa.string()
BAR_KEY_COLUMNS = {"experiment": TEXT, "run": TEXT, "instrument": INT, "bar": LONG, "first": LONG}
"""The columns of every partial bar; `first` is the first row's sequence number."""
RUN = "run"
STREAM = ("experiment", RUN, "instrument")
"""Partial bars are partitioned by these columns, so neither the grouping nor the window of BARS moves them again."""
COLUMNS_READ_ALWAYS = (RUN, "instrument", "sequence", "time_ns")
ROWS_AT_ONCE = 1 << 18


@dataclass(frozen=True)
class EventsFile:
    """A file of a table of events, on this machine."""

    path: str
    experiment: str


def create_partial_bars(
    spark: SparkSession, folder: TablesFolder, existing_tables: Collection[str], every_ns: int
) -> None:
    """Make the views that BARS reads. A simulation may lack some of the three tables; their views are empty."""
    for table in STRETCH_RULES:
        if table not in existing_tables:
            rows = spark.createDataFrame([], from_arrow_schema(_schema(table)))
        elif folder.local is None:
            rows = spark.sql(PARTIAL_BARS[table].format(every_ns=every_ns))
        else:
            rows = _partial_bars_of_local_files(spark, folder, table, every_ns)
        rows.createOrReplaceTempView(f"partial_{table}")


def _partial_bars_of_local_files(spark: SparkSession, folder: TablesFolder, table: str, every_ns: int) -> DataFrame:
    files = []
    for file in folder.files(table):
        files.append(EventsFile(folder.path(file).removeprefix("file:"), experiment_of_file(file)))
    work = partial(partial_bars, files, table, every_ns)
    rows = each_number(spark, len(files), work, _schema(table), partitions=len(files))
    return rows.repartition(*STREAM)


def _schema(table: str) -> pa.Schema:
    return pa.schema({**BAR_KEY_COLUMNS, **STRETCH_RULES[table].bar_columns})


def partial_bars(
    files: Sequence[EventsFile], table: str, every_ns: int, _part: int, numbers: Iterable[int]
) -> Iterator[pa.RecordBatch]:
    """Yield the partial bars of the files with these numbers, which count from 1."""
    schema = _schema(table)
    columns = [*COLUMNS_READ_ALWAYS, *STRETCH_RULES[table].columns_read]
    for number in numbers:
        file = files[number - 1]
        for rows in _rows(file.path, columns):
            bars = _stretches(rows, table, every_ns)
            bars["experiment"] = pa.repeat(file.experiment, len(bars["first"]))
            yield pa.RecordBatch.from_arrays([pa.array(bars[name]) for name in schema.names], schema=schema)


def _rows(path: str, columns: list[str]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file that have a time."""
    try:
        with pq.ParquetFile(path, read_dictionary=[RUN], pre_buffer=False) as file:
            for number in range(file.num_row_groups):
                run = _only_run(file.metadata.row_group(number))
                columns_to_read = [name for name in columns if name != RUN or run is None]
                for batch in file.iter_batches(ROWS_AT_ONCE, [number], columns_to_read, use_threads=False):
                    rows = batch
                    if run is not None:
                        rows = rows.append_column(RUN, _repeated(run, len(rows)))
                    if rows["time_ns"].null_count:
                        rows = rows.filter(rows["time_ns"].is_valid())
                    if len(rows):
                        yield rows
    except (pa.ArrowException, OSError) as error:
        raise DatasetUnreadableError(f"{path} is damaged ({' '.join(str(error).split())}): make it anew") from error


def _repeated(run: str, count: int) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(np.zeros(count, np.int32), [run], safe=False)


def _only_run(rows: pq.RowGroupMetaData) -> str | None:
    """Return the run of all rows if the file's statistics tell that there is one; None if they do not.

    Reading the column of runs would take a fifth of all reading.
    """
    statistics = None
    for number in range(rows.num_columns):
        column = rows.column(number)
        if column.path_in_schema == RUN:
            statistics = column.statistics
    if statistics is None or not statistics.has_min_max or statistics.null_count:
        return None
    return str(statistics.min) if statistics.min == statistics.max else None


def _stretches(rows: pa.RecordBatch, table: str, every_ns: int) -> Columns:
    """Return the columns of partial bars, a row for each stretch; the column `experiment` is missing."""
    time_ns = rows["time_ns"].to_numpy()
    instrument = rows["instrument"].to_numpy()
    sequence = rows["sequence"].to_numpy()
    starts = stretch_starts(rows[RUN].indices.to_numpy(), instrument, sequence, time_ns, every_ns)
    ends = np.append(starts[1:], len(rows)) - 1
    return {
        "run": rows[RUN].take(pa.array(starts)).dictionary_decode(),
        "instrument": instrument[starts],
        "bar": time_ns[starts] // every_ns * every_ns,
        "first": sequence[starts],
        **STRETCH_RULES[table].summarize(rows, starts, ends),
    }


@kernel
def stretch_starts(run: Numbers, instrument: Numbers, sequence: Numbers, time_ns: Numbers, every_ns: int) -> Places:
    """Return the row that begins each stretch.

    The kernel divides one time a stretch; numpy would divide every row's time, and take six times as long.
    """
    starts = np.empty(len(run), np.int64)
    count = 0
    begin_ns = end_ns = 0
    for row in range(len(run)):
        in_bar = begin_ns <= time_ns[row] < end_ns
        # In row 0, row - 1 is the last row, but in_bar is False, since the bar is empty.
        same = run[row] == run[row - 1] and instrument[row] == instrument[row - 1]
        if not (in_bar and same and sequence[row] > sequence[row - 1]):
            starts[count] = row
            count += 1
            begin_ns = time_ns[row] - time_ns[row] % every_ns
            end_ns = begin_ns + every_ns
    return starts[:count]


def _bars_of_trades(rows: pa.RecordBatch, starts: Places, ends: Places) -> Columns:
    price = rows["price"].to_numpy()
    return {
        "open": price[starts],
        "high": np.maximum.reduceat(price, starts),
        "low": np.minimum.reduceat(price, starts),
        "close": price[ends],
        "volume": _sum(rows["volume"].to_numpy(), starts),
        "trades": ends - starts + 1,
    }


def _bars_of_quotes(rows: pa.RecordBatch, starts: Places, ends: Places) -> Columns:
    spread = pc.subtract(rows["ask"], rows["bid"])
    return {
        "spreads": _sum(spread.fill_null(0).to_numpy(), starts),
        "two_sided": _sum(spread.is_valid().to_numpy(zero_copy_only=False), starts),
        "bid": rows["bid"].take(pa.array(ends)),
        "ask": rows["ask"].take(pa.array(ends)),
    }


def _bars_of_orders(rows: pa.RecordBatch, starts: Places, ends: Places) -> Columns:
    volume = rows["volume"].to_numpy()
    is_bid = pc.equal(rows["side"], "bid").to_numpy(zero_copy_only=False)
    return {
        "orders": ends - starts + 1,
        "bids": _sum(np.where(is_bid, volume, 0), starts),
        "asks": _sum(np.where(is_bid, 0, volume), starts),
    }


def _sum(numbers: NDArray[Any], starts: Places) -> Numbers:
    """Return the sum over each stretch."""
    return np.add.reduceat(numbers, starts, dtype=np.int64)


@dataclass(frozen=True, kw_only=True)
class StretchRules:
    """How the stretches of a table become partial bars."""

    columns_read: Sequence[str]
    """The columns that are read beside COLUMNS_READ_ALWAYS."""
    bar_columns: dict[str, pa.DataType]
    """The columns of a partial bar behind BAR_KEY_COLUMNS."""
    summarize: Callable[[pa.RecordBatch, Places, Places], Columns]
    """Returns the bar columns, given the rows, and the first and the last row of each stretch."""


STRETCH_RULES = {
    "trades": StretchRules(
        columns_read=("price", "volume"),
        bar_columns={"open": INT, "high": INT, "low": INT, "close": INT, "volume": LONG, "trades": LONG},
        summarize=_bars_of_trades,
    ),
    "quotes": StretchRules(
        columns_read=("bid", "ask"),
        bar_columns={"spreads": LONG, "two_sided": LONG, "bid": INT, "ask": INT},
        summarize=_bars_of_quotes,
    ),
    "orders": StretchRules(
        columns_read=("side", "volume"),
        bar_columns={"orders": LONG, "bids": LONG, "asks": LONG},
        summarize=_bars_of_orders,
    ),
}
"""By table of events."""
