"""Counts from the recorded streams of a gateway that left no result: the messages on the disk before it died."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np
import numpy.typing as npt

from exchange.instances import answers_file, orders_file
from exchange.market_ids import LEAST_OPENING_ID
from exchange.messages import (
    ANSWER_TYPES,
    INCOMING_TYPES,
    Cancelled,
    Confirmation,
    Rejection,
    Replaced,
    Trade,
    records_of,
    sizes_by_code,
)
from exchange_simulation.launching.lineup import Lineup

CHUNK_BYTES = 16 << 20


def stream_counts(folder: Path, lineup: Lineup) -> dict[int, dict[str, int]]:
    """Return orders sent, orders answered and answers received, by pair; a pair without recorded streams is absent."""
    by_pair = {}
    for pair in lineup.gateway_numbers:
        with suppress(OSError):
            engines = lineup.engine_numbers if lineup.is_market else (1,)
            answers = [folder / answers_file(pair, engine) for engine in engines]
            by_pair[pair] = _counts(folder / orders_file(pair), answers)
    return by_pair


def _counts(orders: Path, answers: Sequence[Path]) -> dict[str, int]:
    """Return the counts of one gateway. OSError if a stream is missing, a link, or no regular file.

    `answers` are its streams from each engine.
    """
    sent = count_orders(orders)
    received = 0
    answered = 0
    for path in answers:
        ids_of_engine = [np.zeros(0, np.int64)]
        for data, starts in _records(path, sizes_by_code(ANSWER_TYPES)):
            received += len(starts)
            ids = _ids(data, starts)
            ids = ids[ids < LEAST_OPENING_ID]  # a trade of an opening order answers no order of the gateway
            if len(answers) == 1:  # orders are numbered 1, 2, 3, ... and one engine answers them in this order
                answered = max(answered, int(ids.max(initial=0)))
            else:
                ids_of_engine.append(np.unique(ids))
        answered += len(np.unique(np.concatenate(ids_of_engine)))
    return {"orders_sent": sent, "orders_answered": answered, "answers_received": received}


def count_orders(path: Path) -> int:
    """Return the number of whole records in a recorded stream of orders. OSError if it is no regular file."""
    return sum(len(starts) for _, starts in _records(path, sizes_by_code(INCOMING_TYPES)))


def _records(path: Path, sizes: npt.NDArray[np.int64]) -> Iterator[tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]]:
    """Yield parts of a stream, each with the starts of its whole records. `sizes` are record sizes by type byte."""
    from matching_engine.tape import offsets_of

    incomplete = np.zeros(0, np.uint8)
    for chunk in _chunks(path):
        data = np.concatenate([incomplete, chunk])
        offsets = offsets_of(data, sizes)
        yield data, offsets[:-1]
        incomplete = data[offsets[-1] :]


def _ids(data: npt.NDArray[np.uint8], starts: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the order numbers in these answers."""
    ids = [np.zeros(0, np.int64)]
    for kind in (Confirmation, Trade, Rejection, Cancelled, Replaced):
        _, rows = records_of(kind, data, starts)
        ids.append(rows["id"].astype(np.int64))
    return np.concatenate(ids)


def _chunks(path: Path) -> Iterator[npt.NDArray[np.uint8]]:
    """Yield the file's bytes in chunks. OSError for a link."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(f"{path} is no regular file")
        data = file.read(CHUNK_BYTES)
        while data:
            yield np.frombuffer(data, np.uint8)
            data = file.read(CHUNK_BYTES)
