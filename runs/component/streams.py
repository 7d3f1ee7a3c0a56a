"""Keeping a direction's bytes in a file while its checksum is taken."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from exchange.checksum import Stream, StreamChecksum
from exchange.instances import named
from exchange.messages import LAYOUTS, Order
from exchange.settings import RunSettings
from runs.errors import UserError


class RecordedStream(StreamChecksum):
    """Every byte goes to the file as well; a tape that `exchange match` replays. OSError, naming the file."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path
        self.size = 0
        self._file = path.open("xb", buffering=1 << 20)

    def update(self, data: npt.NDArray[np.uint8]) -> None:
        super().update(data)
        self.size += len(data)
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
def open_streams(folder: Path, settings: RunSettings, instance: int = 1) -> Iterator[tuple[Stream, Stream]]:
    """Orders and answers of a pair: recorded where the settings say so, in this folder, else only hashed."""
    if not settings.record:
        yield StreamChecksum(), StreamChecksum()
        return
    with contextlib.ExitStack() as held:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            files = [folder / f"{named(stream, instance)}.bin" for stream in ("orders", "answers")]
            orders, answers = (RecordedStream(file) for file in files)
        except FileExistsError as error:
            raise UserError(f"{error.filename} exists already: choose another name with --run") from error
        for stream in (orders, answers):
            held.callback(stream.close)
        yield orders, answers
        _write_due(files[0], settings, instance, orders.size // LAYOUTS[Order].size)


def _write_due(tape: Path, settings: RunSettings, instance: int, orders: int) -> None:
    """As planned, so the same whatever the run was like; with them the orders can be offered as they were."""
    from gateway.instruments import settings_of_pair
    from gateway.tape import due_path
    from runs.component.tape import write_due

    path = due_path(tape)
    try:
        write_due(path, settings_of_pair(settings, instance), orders)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error
