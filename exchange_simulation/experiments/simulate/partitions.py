"""Partitions of a simulation: some of its instruments each, matched one after the other, in this process or in Spark.

A partition yields the rows of its instruments. instruments.parquet has those of all partitions, simulation.json their
sums.
"""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from exchange.results import NAME
from exchange_simulation.experiments.simulate.events import (
    BLOCK_ORDERS,
    EventFiles,
    TableFile,
    WantedEvents,
    WrittenTable,
    hidden_folder,
    refuse_existing,
    rows_in,
)
from exchange_simulation.experiments.simulate.simulation import InstrumentMatcher, InstrumentRow, Simulation
from exchange_simulation.launching.errors import cannot_write, writing
from exchange_simulation.launching.files import whole_file

OnPartitions = Callable[[int], None]
"""A function that is called repeatedly with the number of finished partitions so far."""
ROWS_FILE = "instruments.parquet"
"""The file with a row for each instrument. Its column types are known to every reader of Parquet."""
CHECKSUM_COLUMNS = ("orders_xxh64", "answers_xxh64")
PRICE_COLUMNS = ("bid", "ask")
"""The best prices, which are null if the side of the book is empty."""
SUM_COLUMNS = tuple(
    name for name in InstrumentRow._fields if name not in {"instrument", "seed", *PRICE_COLUMNS, *CHECKSUM_COLUMNS}
)
"""Columns of which the record has the sum over instruments."""
SPREAD_COLUMNS = ("orders", "trades", "volume_traded")
"""Columns of which the record has the least, the median and the highest value of an instrument."""


def _field(name: str) -> pa.Field:
    if name in CHECKSUM_COLUMNS:
        return pa.field(name, pa.string(), nullable=False)
    if name in PRICE_COLUMNS:
        return pa.field(name, pa.int32(), nullable=True)
    return pa.field(name, pa.int64(), nullable=False)


SCHEMA = pa.schema([_field(name) for name in InstrumentRow._fields])


@dataclass(frozen=True)
class Matched:
    """A matched simulation."""

    rows: pa.Table
    """A row for each instrument."""
    start_up_s: float
    """The time before the first order was matched."""
    matching_s: float
    written: Mapping[str, WrittenTable] = field(default_factory=dict)
    """The tables of events, by name."""
    notes: tuple[str, ...] = ()
    """Sentences for the user."""

    def write(self, folder: Path) -> None:
        """Write the rows to ROWS_FILE in the folder."""
        with writing(folder / ROWS_FILE), whole_file(folder / ROWS_FILE) as file:
            pq.write_table(self.rows, file, compression="zstd")

    @property
    def totals(self) -> dict[str, int]:
        return {name: pc.sum(self.rows[name]).as_py() for name in SUM_COLUMNS}

    @property
    def spread(self) -> dict[str, dict[str, float]]:
        return {name: _spread(self.rows[name]) for name in SPREAD_COLUMNS}

    @property
    def checksums(self) -> dict[str, str]:
        """The sums of all instruments' checksums modulo 2^64. They do not depend on the order of the instruments."""
        checksums = {"hash": f"sum of {NAME}"}
        for column in CHECKSUM_COLUMNS:
            total = sum(int(checksum, 16) for checksum in self.rows[column].to_pylist())
            stream = column.removesuffix(f"_{NAME}")
            checksums[stream] = f"{total % 2**64:016x}"
        return checksums


INSTRUMENTS = "instruments"
"""The table of the rows of instruments; all other tables are of events."""
FILES = pa.schema([("table", pa.string()), ("file", pa.string()), ("content", pa.binary())])
"""The columns of a TableFile as a row for Spark."""


@dataclass(frozen=True)
class MatchPartition:
    """Matches a partition, and yields whole Parquet files: rows of its instruments, and the wanted events.

    An executor of Spark receives only this object.
    """

    simulation: Simulation
    events: WantedEvents | None = None

    def __call__(self, partition: int, instruments: Iterable[int]) -> Iterator[pa.RecordBatch]:
        """Yield the partition's files as rows of FILES."""
        for file in self.files(partition, instruments):
            yield pa.RecordBatch.from_pylist([file._asdict()], FILES)

    def warm_up(self, _part: int, instruments: Iterable[int]) -> Iterator[pa.RecordBatch]:
        """Match a few orders for each instrument, so that all kernels are loaded before the clock starts."""
        small = replace(self, simulation=replace(self.simulation, instruments=1, orders=1_000))
        for _ in instruments:
            list(small(0, [1]))
        yield pa.RecordBatch.from_pylist([], FILES)

    def files(self, partition: int, instruments: Iterable[int]) -> Iterator[TableFile]:
        """Match a partition's instruments. Yields each file of events when it is full, and the file of rows last."""
        rows: list[InstrumentRow] = []
        event_files = None
        if self.events:
            matcher = InstrumentMatcher(self.simulation, by_order=True, block=BLOCK_ORDERS)
            event_files = EventFiles(self.events, partition, self.simulation.max_price)
        else:
            matcher = InstrumentMatcher(self.simulation)
        for number in instruments:
            for block_or_row in matcher.match(number):
                if isinstance(block_or_row, InstrumentRow):
                    rows.append(block_or_row)
                elif event_files:
                    yield from event_files.add(block_or_row)
        if event_files:
            yield from event_files.finish()
        yield TableFile(table=INSTRUMENTS, file=f"{partition:06}-000000-{len(rows)}", content=file_of_rows(rows))


def match_in_this_process(
    work: MatchPartition, partitions: int, on_partitions: OnPartitions, tables: Path | None
) -> Matched:
    """Match all partitions, one after the other, and write events into `tables`."""
    instruments = work.simulation.instruments
    files_of_rows = []
    start_s = time.monotonic()
    list(work.warm_up(0, (1,)))
    ready_s = time.monotonic()
    with _written_here(work.events, tables) as writer:
        for partition in range(partitions):
            for file in work.files(partition, instruments_of_partition(partition, partitions, instruments)):
                if file.table == INSTRUMENTS:
                    files_of_rows.append(file.content)
                elif writer:
                    writer.write(file)
            on_partitions(partition + 1)
    rows = rows_of_files(files_of_rows)
    matching_s = time.monotonic() - ready_s
    return Matched(
        rows=rows,
        start_up_s=ready_s - start_s,
        matching_s=matching_s,
        written=writer.written if writer else {},
    )


def instruments_of_partition(partition: int, partitions: int, instruments: int) -> range:
    """Return the numbers of a partition's instruments, from 1 on. Spark divides a range into the same partitions."""
    first = 1 + partition * instruments // partitions
    end = 1 + (partition + 1) * instruments // partitions
    return range(first, end)


@contextlib.contextmanager
def _written_here(events: WantedEvents | None, tables: Path | None) -> Iterator[_Writer | None]:
    """Yield a writer of events, None if no events are wanted. At the end move each table's folder to its place.

    The files are written to a hidden folder first, so that readers never see a part of them.
    """
    if events is None or tables is None:
        yield None
        return
    tables_with_run = [name for name in events.tables if (tables / name / events.folder).exists()]
    refuse_existing(events, str(tables), tables_with_run)
    hidden = tables / hidden_folder(events)
    try:
        writer = _Writer(hidden, events)
        yield writer
        for table in writer.written:
            (tables / table).mkdir(exist_ok=True)
            (hidden / table).rename(tables / table / events.folder)
    except OSError as error:
        raise cannot_write(Path(error.filename or hidden), error) from error
    finally:
        shutil.rmtree(hidden, ignore_errors=True)


class _Writer:
    """Writes numbered files of each table into a folder of this machine."""

    def __init__(self, folder: Path, events: WantedEvents) -> None:
        self._folder = folder
        self.written = dict.fromkeys(events.tables, WrittenTable(0, 0, 0))
        for table in events.tables:
            (folder / table).mkdir(parents=True)

    def write(self, file: TableFile) -> None:
        written = self.written[file.table]
        (self._folder / file.table / f"part-{written.files}.parquet").write_bytes(file.content)
        self.written[file.table] = WrittenTable(
            files=written.files + 1,
            rows=written.rows + rows_in(file.file),
            bytes=written.bytes + len(file.content),
        )


def file_of_rows(rows: Iterable[InstrumentRow]) -> bytes:
    """Return the rows as a Parquet file."""
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist([row._asdict() for row in rows], SCHEMA), sink)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def rows_of_files(files: Iterable[bytes]) -> pa.Table:
    """Return the rows of all files that `file_of_rows` made, sorted by instrument."""
    tables = [pq.read_table(pa.BufferReader(file), schema=SCHEMA) for file in files]
    return sorted_rows(pa.concat_tables(tables))


def sorted_rows(rows: pa.Table) -> pa.Table:
    """Return the rows sorted by instrument, in the types of SCHEMA."""
    return rows.cast(SCHEMA).sort_by("instrument").combine_chunks()


def _spread(column: pa.ChunkedArray) -> dict[str, float]:
    """Return the least, the median and the highest value of a column."""
    least_and_most = pc.min_max(column).as_py()
    median = pc.quantile(column, 0.5)[0].as_py()
    return {"min": least_and_most["min"], "median": median, "max": least_and_most["max"]}
