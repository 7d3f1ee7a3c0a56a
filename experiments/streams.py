"""Keeping a direction's bytes in a file while its checksum is taken."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from exchange.checksum import Stream, StreamChecksum
from experiments.errors import UserError


class RecordedStream(StreamChecksum):
    """Every byte goes to the file as well; a tape that `exchange match` replays. OSError, naming the file."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path
        self._file = path.open("xb", buffering=1 << 20)

    def update(self, data: npt.NDArray[np.uint8]) -> None:
        super().update(data)
        try:
            self._file.write(data.data)
        except OSError as error:
            raise self._named(error) from error

    def close(self) -> None:
        try:
            self._file.close()
        except OSError as error:
            raise self._named(error) from error

    def _named(self, error: OSError) -> OSError:
        return OSError(error.errno, error.strerror, str(self._path))


@contextlib.contextmanager
def open_streams(folder: Path | None) -> Iterator[tuple[Stream, Stream]]:
    """Orders and answers: recorded where a folder is given, else only hashed."""
    if folder is None:
        yield StreamChecksum(), StreamChecksum()
        return
    with contextlib.ExitStack() as held:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            recorded = [RecordedStream(folder / name) for name in ("orders.bin", "answers.bin")]
        except FileExistsError as error:
            raise UserError(f"{error.filename} exists already: choose another name with --run") from error
        for stream in recorded:
            held.callback(stream.close)
        yield recorded[0], recorded[1]
