"""The trades of a part in one Parquet file, which appears by rename: a row for each trade, in the engine's order.

A kernel fills the columns, which are written a million rows at a time. The memory in use therefore depends neither on
the number of trades nor on that of instruments.
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

from experiments.simulate.simulation import Take
from matching_engine.encoding import TRADE_BYTES, TradeColumns, copy_trades

FOLDER = "trades"
ROWS = 1 << 20
"""About the size of a row group."""

SCHEMA = pa.schema(
    [("instrument", pa.int32()), ("id", pa.uint32()), ("price", pa.uint16()), ("volume", pa.uint16())]
)  # fmt: skip


def part_file(folder: Path, part: int) -> Path:
    return folder / f"part-{part:05d}.parquet"


class TradesWriter:
    """Gathers trades, instrument by instrument."""

    def __init__(self, file: pq.ParquetWriter) -> None:
        self._file = file
        self._columns, self._instruments, self._row = TradeColumns.of(ROWS), np.zeros(ROWS, np.int32), 0

    def of(self, instrument: int) -> Take:
        """A function that takes the instrument's answers."""

        def take(answers: npt.NDArray[np.uint8]) -> None:
            most = len(answers) // TRADE_BYTES
            if self._row + most > len(self._instruments):
                self.flush()
                self._enlarge(most)
            row, columns = self._row, self._columns
            self._row = copy_trades(answers, columns.id, columns.price, columns.volume, row)
            self._instruments[row : self._row] = instrument

        return take

    def flush(self) -> None:
        if self._row:
            arrays = [column[: self._row] for column in (self._instruments, *self._columns)]
            self._file.write_table(pa.Table.from_arrays(list(map(pa.array, arrays)), schema=SCHEMA))
            self._row = 0

    def _enlarge(self, rows: int) -> None:
        """Make space for a block with more trades than usual, of orders that sweep the whole book."""
        if rows > len(self._instruments):
            self._columns, self._instruments = TradeColumns.of(rows), np.zeros(rows, np.int32)


class TradesUnwritable(Exception):
    """A sentence about trades that cannot be written, possibly on another host."""


@contextlib.contextmanager
def trades_of_part(folder: Path, part: int) -> Iterator[TradesWriter]:
    """A writer whose file has a name of its own until it is whole, since Spark may do a part twice."""
    hidden = folder / f".part-{part:05d}.{secrets.token_hex(4)}"
    try:
        with _parquet(hidden) as writer:
            yield writer
        hidden.replace(part_file(folder, part))
    except BaseException as error:
        with contextlib.suppress(OSError):
            hidden.unlink()
        if isinstance(error, OSError):
            hint = "make room there; on a cluster it must be a folder that every worker shares with this machine"
            raise TradesUnwritable(f"cannot write trades into {folder}: {error.strerror}; {hint}") from error
        raise


@contextlib.contextmanager
def _parquet(path: Path) -> Iterator[TradesWriter]:
    options: dict[str, Any] = {"compression": "zstd", "use_dictionary": ["instrument", "price"]}
    with path.open("wb") as file, pq.ParquetWriter(file, SCHEMA, **options) as parquet:
        writer = TradesWriter(parquet)
        yield writer
        writer.flush()


def remove_unfinished(folder: Path) -> None:
    """Remove the files that killed attempts left; the parts themselves are whole."""
    for hidden in folder.glob(".part-*"):
        hidden.unlink(missing_ok=True)


def trade_files(folder: Path) -> dict[str, Any]:
    """simulation.json's `trades`: the number, rows and bytes of the finished files."""
    files = sorted(folder.glob("part-*.parquet"))
    return {
        "folder": folder.name,
        "files": len(files),
        "rows": sum(pq.read_metadata(file).num_rows for file in files),
        "bytes": sum(file.stat().st_size for file in files),
    }
