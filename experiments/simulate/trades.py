"""The trades of a part in one Parquet file, which appears by rename: a row for each that left the engine, in its order.

The columns are filled by a kernel and written a million rows at a time, so that neither their number nor that of the
instruments matters to the memory.
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from experiments.simulate.instrument import Take
from matching_engine.trades import TRADE_BYTES, TradeColumns, copy_trades

FOLDER = "trades"
ROWS = 1 << 20
"""Of a row group, about."""

SCHEMA = pa.schema(
    [("instrument", pa.int32()), ("id", pa.uint32()), ("price", pa.uint16()), ("volume", pa.uint16())]
)  # fmt: skip


def part_file(folder: Path, part: int) -> Path:
    return folder / f"part-{part:05d}.parquet"


class TradesWriter:
    """Gathers trades instrument by instrument."""

    def __init__(self, file: pq.ParquetWriter) -> None:
        self._file = file
        self._columns, self._instruments, self._row = TradeColumns.of(ROWS), np.zeros(ROWS, np.int32), 0

    def of(self, instrument: int) -> Take:
        """What takes that instrument's answers."""

        def take(answers: npt.NDArray[np.uint8]) -> None:
            most = len(answers) // TRADE_BYTES
            if self._row + most > len(self._instruments):
                self.flush()
                self._make_room(most)
            row, columns = self._row, self._columns
            self._row = copy_trades(answers, columns.id, columns.price, columns.volume, row)
            self._instruments[row : self._row] = instrument

        return take

    def flush(self) -> None:
        if self._row:
            arrays = [column[: self._row] for column in (self._instruments, *self._columns)]
            self._file.write_table(pa.Table.from_arrays(list(map(pa.array, arrays)), schema=SCHEMA))
            self._row = 0

    def _make_room(self, rows: int) -> None:
        """Orders that sweep the whole book have more trades in a block than usual."""
        if rows > len(self._instruments):
            self._columns, self._instruments = TradeColumns.of(rows), np.zeros(rows, np.int32)


class TradesUnwritable(Exception):
    """A sentence: it may have to come back from another host."""


@contextlib.contextmanager
def trades_of_part(folder: Path, part: int) -> Iterator[TradesWriter]:
    """Under a name of this attempt's own until it is whole: Spark may do a part twice."""
    hidden = folder / f".part-{part:05d}.{secrets.token_hex(4)}"
    try:
        with _parquet(hidden) as writer:
            yield writer
        hidden.replace(part_file(folder, part))
    except BaseException as error:
        with contextlib.suppress(OSError):
            hidden.unlink()
        if isinstance(error, OSError):
            told = "make room there; on a cluster it must be a folder that every worker shares with this machine"
            raise TradesUnwritable(f"cannot write trades into {folder}: {error.strerror}; {told}") from error
        raise


@contextlib.contextmanager
def _parquet(path: Path) -> Iterator[TradesWriter]:
    options: dict[str, Any] = {"compression": "zstd", "use_dictionary": ["instrument", "price"]}
    with path.open("wb") as file, pq.ParquetWriter(file, SCHEMA, **options) as parquet:
        writer = TradesWriter(parquet)
        yield writer
        writer.flush()


def left_behind(folder: Path) -> None:
    """Remove what attempts have left that were killed; the parts themselves are whole."""
    for hidden in folder.glob(".part-*"):
        hidden.unlink(missing_ok=True)
