"""Parts of a simulation: each is some instruments, matched one after the other, in this process or by Spark."""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa

from experiments.simulate.events import (
    BLOCK_ORDERS,
    EventFiles,
    Events,
    TableFile,
    WrittenTable,
    hidden_folder,
    refuse_existing,
    rows_in,
)
from experiments.simulate.rows import as_file, of_files
from experiments.simulate.simulation import InstrumentMatcher, Row, Simulation
from runs.errors import cannot_write

OnParts = Callable[[int], None]
"""Called now and then with the number of finished parts."""


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


INSTRUMENTS = "instruments"
"""The table of instruments' rows, beside those of events."""
FILES = pa.schema([("table", pa.string()), ("file", pa.string()), ("content", pa.binary())])


@dataclass(frozen=True)
class MatchPart:
    """Gives whole Parquet files: rows of a part's instruments, and the events that are asked for.

    It is all that an executor receives.
    """

    simulation: Simulation
    events: Events | None = None

    def __call__(self, part: int, instruments: Iterable[int]) -> Iterator[pa.RecordBatch]:
        for file in self.files(part, instruments):
            yield pa.RecordBatch.from_pylist([file._asdict()], FILES)

    def files(self, part: int, instruments: Iterable[int]) -> Iterator[TableFile]:
        rows: list[Row] = []
        if self.events is None:
            matcher, writer = InstrumentMatcher(self.simulation), None
        else:
            matcher = InstrumentMatcher(self.simulation, by_order=True, block=BLOCK_ORDERS)
            writer = EventFiles(self.events, part, self.simulation.max_price)
        for number in instruments:
            for found in matcher.match(number):
                if isinstance(found, Row):
                    rows.append(found)
                elif writer:
                    yield from writer.add(found)
        if writer:
            yield from writer.finish()
        yield TableFile(INSTRUMENTS, f"{part:06}-000000-{len(rows)}", as_file(rows))


@dataclass(frozen=True)
class WarmUp:
    """Matches a few orders as a part would, so that everything is loaded before the clock starts."""

    work: MatchPart

    def __call__(self, _part: int, instruments: Iterable[int]) -> Iterator[pa.RecordBatch]:
        small = replace(self.work, simulation=replace(self.work.simulation, instruments=1, orders=1_000))
        for _ in instruments:
            list(small(0, [1]))
        yield pa.RecordBatch.from_pylist([], FILES)


def match_in_this_process(work: MatchPart, parts: int, on_parts: OnParts, tables: Path | None) -> Matched:
    """All parts, one after the other; events go into `tables`."""
    instruments, found = work.simulation.instruments, []
    start_s = time.monotonic()
    list(WarmUp(work)(0, (1,)))
    ready_s = time.monotonic()
    with _written_here(work.events, tables) as writer:
        for part in range(parts):
            for file in work.files(part, numbers_of(part, parts, instruments)):
                if file.table == INSTRUMENTS:
                    found.append(file.content)
                elif writer:
                    writer.write(file)
            on_parts(part + 1)
    rows = of_files(found)
    return Matched(rows, ready_s - start_s, time.monotonic() - ready_s, writer.written if writer else {})


def numbers_of(part: int, parts: int, instruments: int) -> range:
    """The numbers of a part's instruments, cut as Spark would cut them."""
    return range(1 + part * instruments // parts, 1 + (part + 1) * instruments // parts)


@contextlib.contextmanager
def _written_here(events: Events | None, tables: Path | None) -> Iterator[_Writer | None]:
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

    def __init__(self, folder: Path, events: Events) -> None:
        self._folder = folder
        self.written = dict.fromkeys(events.tables, WrittenTable(0, 0, 0))
        for table in events.tables:
            (folder / table).mkdir(parents=True)

    def write(self, file: TableFile) -> None:
        files, rows, size = self.written[file.table]
        (self._folder / file.table / f"part-{files}.parquet").write_bytes(file.content)
        self.written[file.table] = WrittenTable(files + 1, rows + rows_in(file.file), size + len(file.content))
