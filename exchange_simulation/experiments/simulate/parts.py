"""Parts of a simulation: each is some instruments, matched one after the other, in this process or by Spark.

A part gives the row of each of its instruments. All rows stand in instruments.parquet, and simulation.json has their
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

OnParts = Callable[[int], None]
"""A function that is called now and then with the number of finished parts."""
ROWS_FILE = "instruments.parquet"
"""A row for each instrument, in types that every reader of Parquet has."""
TEXTS = ("orders_xxh64", "answers_xxh64")
SMALL = ("bid", "ask")
"""Columns that are null if the book's side is empty."""

SUMS = tuple(name for name in InstrumentRow._fields if name not in {"instrument", "seed", *SMALL, *TEXTS})
"""Columns whose sum over instruments means something."""
SPREAD = ("orders", "trades", "volume_traded")
"""Columns that the record gives as the least, the median and the most of an instrument."""


def _field(name: str) -> pa.Field:
    if name in TEXTS:
        return pa.field(name, pa.string(), nullable=False)
    if name in SMALL:
        return pa.field(name, pa.int32(), nullable=True)
    return pa.field(name, pa.int64(), nullable=False)


SCHEMA = pa.schema([_field(name) for name in InstrumentRow._fields])


@dataclass(frozen=True)
class Matched:
    """A matched simulation: every instrument's row, and the time before and after the first order."""

    rows: pa.Table
    start_up_s: float
    matching_s: float
    written: Mapping[str, WrittenTable] = field(default_factory=dict)
    """The tables of events."""
    notes: tuple[str, ...] = ()
    """Sentences for the user."""

    def write(self, folder: Path) -> None:
        with writing(folder / ROWS_FILE), whole_file(folder / ROWS_FILE) as file:
            pq.write_table(self.rows, file, compression="zstd")

    @property
    def totals(self) -> dict[str, int]:
        return {name: pc.sum(self.rows[name]).as_py() for name in SUMS}

    @property
    def spread(self) -> dict[str, dict[str, float]]:
        return {name: _spread(self.rows[name]) for name in SPREAD}

    @property
    def checksums(self) -> dict[str, str]:
        """The sums of all instruments' checksums modulo 2^64, which do not depend on their order."""
        sums = {name: sum(int(text, 16) for text in self.rows[name].to_pylist()) % 2**64 for name in TEXTS}
        return {
            "hash": f"sum of {NAME}",
            **{name.removesuffix(f"_{NAME}"): f"{total:016x}" for name, total in sums.items()},
        }


INSTRUMENTS = "instruments"
"""The table of instruments' rows, beside those of events."""
FILES = pa.schema([("table", pa.string()), ("file", pa.string()), ("content", pa.binary())])


@dataclass(frozen=True)
class MatchPart:
    """Matches a part, and gives whole Parquet files: rows of its instruments, and the events that are asked for.

    An executor of Spark receives this object, and nothing else.
    """

    simulation: Simulation
    events: WantedEvents | None = None

    def __call__(self, part: int, instruments: Iterable[int]) -> Iterator[pa.RecordBatch]:
        """Yield the part's files as rows of FILES."""
        for file in self.files(part, instruments):
            yield pa.RecordBatch.from_pylist([file._asdict()], FILES)

    def warm_up(self, _part: int, instruments: Iterable[int]) -> Iterator[pa.RecordBatch]:
        """Match a few orders as a part would, so that everything is loaded before the clock starts."""
        small = replace(self, simulation=replace(self.simulation, instruments=1, orders=1_000))
        for _ in instruments:
            list(small(0, [1]))
        yield pa.RecordBatch.from_pylist([], FILES)

    def files(self, part: int, instruments: Iterable[int]) -> Iterator[TableFile]:
        """Match the instruments of a part; yield files of events as they are full, and the file of rows last."""
        rows: list[InstrumentRow] = []
        event_files = None
        if self.events:
            matcher = InstrumentMatcher(self.simulation, by_order=True, block=BLOCK_ORDERS)
            event_files = EventFiles(self.events, part, self.simulation.max_price)
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
        yield TableFile(INSTRUMENTS, f"{part:06}-000000-{len(rows)}", as_file(rows))


def match_in_this_process(work: MatchPart, parts: int, on_parts: OnParts, tables: Path | None) -> Matched:
    """Match all parts, one after the other; events go into `tables`."""
    instruments = work.simulation.instruments
    files_of_rows = []
    start_s = time.monotonic()
    list(work.warm_up(0, (1,)))
    ready_s = time.monotonic()
    with _written_here(work.events, tables) as writer:
        for part in range(parts):
            for file in work.files(part, numbers_of(part, parts, instruments)):
                if file.table == INSTRUMENTS:
                    files_of_rows.append(file.content)
                elif writer:
                    writer.write(file)
            on_parts(part + 1)
    rows = of_files(files_of_rows)
    matching_s = time.monotonic() - ready_s
    return Matched(rows, ready_s - start_s, matching_s, writer.written if writer else {})


def numbers_of(part: int, parts: int, instruments: int) -> range:
    """Return the numbers of a part's instruments, cut as Spark would cut them."""
    return range(1 + part * instruments // parts, 1 + (part + 1) * instruments // parts)


@contextlib.contextmanager
def _written_here(events: WantedEvents | None, tables: Path | None) -> Iterator[_Writer | None]:
    """Write files out of sight; each table's folder gets its name at once, after the last."""
    if events is None or tables is None:
        yield None
        return
    refuse_existing(events, str(tables), [name for name in events.tables if (tables / name / events.folder).exists()])
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
    """Writes the files of each table, numbered, into a folder of this machine."""

    def __init__(self, folder: Path, events: WantedEvents) -> None:
        self._folder = folder
        self.written = dict.fromkeys(events.tables, WrittenTable(0, 0, 0))
        for table in events.tables:
            (folder / table).mkdir(parents=True)

    def write(self, file: TableFile) -> None:
        files, rows, size = self.written[file.table]
        (self._folder / file.table / f"part-{files}.parquet").write_bytes(file.content)
        self.written[file.table] = WrittenTable(files + 1, rows + rows_in(file.file), size + len(file.content))


def as_file(rows: Iterable[InstrumentRow]) -> bytes:
    """Return the rows as a Parquet file."""
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist([row._asdict() for row in rows], SCHEMA), sink)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def of_files(files: Iterable[bytes]) -> pa.Table:
    """Return the whole table, sorted by instrument, from files of `as_file`."""
    return in_order(pa.concat_tables(pq.read_table(pa.BufferReader(file), schema=SCHEMA) for file in files))


def in_order(rows: pa.Table) -> pa.Table:
    return rows.cast(SCHEMA).sort_by("instrument").combine_chunks()


def _spread(column: pa.ChunkedArray) -> dict[str, float]:
    """Return the least, the median and the most of a column."""
    least_and_most = pc.min_max(column).as_py()
    median = pc.quantile(column, 0.5)[0].as_py()
    return {"min": least_and_most["min"], "median": median, "max": least_and_most["max"]}
