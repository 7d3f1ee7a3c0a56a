"""Counts from the recorded streams of a gateway that left no result: the messages on the disk before it died."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import numpy.typing as npt

from exchange.instances import named
from exchange.messages import LAYOUTS, Confirmation, Order, Rejection, Trade, records_of
from exchange_simulation.launching.lineup import Lineup

CHUNK_BYTES = 16 << 20


def stream_counts(folder: Path, lineup: Lineup) -> dict[int, dict[str, int]]:
    """Return orders sent, orders answered and answers received, by pair; a pair without recorded streams is absent."""
    by_pair = {}
    for pair in lineup.pairs:
        with suppress(OSError):
            by_pair[pair] = _counts(folder / f"{named('orders', pair)}.bin", folder / f"{named('answers', pair)}.bin")
    return by_pair


def _counts(orders: Path, answers: Path) -> dict[str, int]:
    """Return the counts of one pair. OSError if a stream is missing, a link, or no regular file."""
    from matching_engine.encoding import ANSWER_SIZES
    from matching_engine.tape import offsets_of

    sent = sum(len(chunk) for chunk in _chunks(orders)) // LAYOUTS[Order].size
    received = 0
    answered = 0
    incomplete_answer = np.zeros(0, np.uint8)
    for chunk in _chunks(answers):
        data = np.concatenate([incomplete_answer, chunk])
        offsets = offsets_of(data, ANSWER_SIZES)
        received += len(offsets) - 1
        answered = max(answered, _highest_id(data, offsets[:-1]))
        incomplete_answer = data[offsets[-1] :]
    return {"orders_sent": sent, "orders_answered": answered, "answers_received": received}


def _highest_id(data: npt.NDArray[np.uint8], starts: npt.NDArray[np.int64]) -> int:
    """Return the highest order number in these answers. Orders are numbered 1, 2, 3, ... and answered in this order."""
    highest = 0
    for kind in (Confirmation, Trade, Rejection):
        _, rows = records_of(kind, data, starts)
        if len(rows):
            highest = max(highest, int(rows["id"].max()))
    return highest


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
