"""The streams of a gateway's orders and answers: their checksums, and with --record files for `exchange match`."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from exchange.instances import answers_file, orders_file
from exchange.results import GatewayStreams, HashedStream
from exchange.settings import RunSettings
from exchange_simulation.launching.errors import UserError

FLUSH_EVERY_S = 1.0


class RecordedStream:
    """A stream's checksum and a file of all its bytes, which `exchange match` can replay. An OSError names the file."""

    keeps_bytes = True

    def __init__(self, checksum: HashedStream, path: Path, overwrite: bool = False) -> None:
        self._checksum = checksum
        self.state = checksum.state
        self._path = path
        self.size = 0
        self._flush_s = time.monotonic() + FLUSH_EVERY_S
        self._file = path.open("wb" if overwrite else "xb", buffering=1 << 20)

    @property
    def value(self) -> int:
        return self._checksum.value

    @property
    def hex(self) -> str:
        return self._checksum.hex

    def update(self, data: npt.NDArray[np.uint8]) -> None:
        self._checksum.update(data)
        self.size += len(data)
        try:
            self._file.write(data.data)
            now_s = time.monotonic()
            if now_s >= self._flush_s:  # if the process is killed, only the bytes after the last flush are lost
                self._file.flush()
                self._flush_s = now_s + FLUSH_EVERY_S
        except OSError as error:
            raise _with_path(error, self._path) from error

    def flush(self) -> None:
        try:
            self._file.flush()
        except OSError as error:
            raise _with_path(error, self._path) from error

    def close(self) -> None:
        try:
            self._file.close()
        except OSError as error:
            raise _with_path(error, self._path) from error


def _with_path(error: OSError, path: Path) -> OSError:
    """Return the error with the file's path; errors of `write` and `close` have none."""
    return OSError(error.errno, error.strerror, str(path))


@contextlib.contextmanager
def open_streams(
    folder: Path, settings: RunSettings, instance: int = 1, overwrite: bool = False
) -> Iterator[GatewayStreams]:
    """Yield the streams of a gateway: files in this folder if `record` is set, else checksums alone.

    `overwrite` replaces existing files: those of a killed gateway that this gateway replaces.
    """
    from exchange.checksum import StreamChecksum

    engines = range(1, settings.engines + 1)
    if not settings.record:
        yield GatewayStreams(StreamChecksum(), tuple(StreamChecksum() for _ in engines))
        return
    with contextlib.ExitStack() as stack:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            tape = folder / orders_file(instance)
            orders = RecordedStream(StreamChecksum(), tape, overwrite)
            stack.callback(orders.close)
            answers = []
            for engine in engines:
                path = folder / answers_file(instance, engine)
                answers.append(RecordedStream(StreamChecksum(), path, overwrite))
                stack.callback(answers[-1].close)
        except FileExistsError as error:
            raise UserError(f"{error.filename} exists already: choose another name with --run") from error
        yield GatewayStreams(orders, tuple(answers))
    _write_due_times(tape, settings, instance)


@contextlib.contextmanager
def open_input(path: Path | None) -> Iterator[HashedStream | None]:
    """Yield the stream of the orders of all gateways at one engine, a file; None without a path."""
    if path is None:
        yield None
        return
    from exchange.checksum import StreamChecksum

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        stream = RecordedStream(StreamChecksum(), path)
    except FileExistsError as error:
        raise UserError(f"{path} exists already: choose another name with --input") from error
    try:
        yield stream
    finally:
        stream.close()


def _write_due_times(tape: Path, settings: RunSettings, instance: int) -> None:
    """Write the planned due times. A replay then offers the same load, which the times of sending would not."""
    from exchange_simulation.launching.tape import write_due
    from gateway.seeds import settings_of_gateway
    from gateway.tape import due_path, map_file
    from gateway.tape_records import read_records

    path = due_path(tape)
    orders = read_records(map_file(tape)).total
    try:
        write_due(path, settings_of_gateway(settings, instance), orders)
    except OSError as error:
        raise _with_path(error, path) from error
