"""Keeping a direction's bytes in a file while its checksum is taken."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from exchange.checksum import Stream, StreamChecksum


class RecordedStream(StreamChecksum):
    """Every byte goes to the file as well; a tape that `exchange match` replays."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._file = path.open("wb", buffering=1 << 20)

    def update(self, data: npt.NDArray[np.uint8]) -> None:
        super().update(data)
        self._file.write(data.data)

    def close(self) -> None:
        self._file.close()


def open_streams(folder: Path | None) -> tuple[Stream, Stream]:
    """Orders and answers: recorded where a folder is given, else only hashed."""
    if folder is None:
        return StreamChecksum(), StreamChecksum()
    return RecordedStream(folder / "orders.bin"), RecordedStream(folder / "answers.bin")


def close_streams(streams: tuple[Stream, Stream]) -> None:
    for stream in streams:
        if isinstance(stream, RecordedStream):
            stream.close()
