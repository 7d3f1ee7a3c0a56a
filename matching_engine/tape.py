"""Matches a tape: a file of orders and cancels, one after the other, which become frames of one record each."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import numpy as np

from exchange import messages
from exchange.compiled import cached_kernel
from exchange.messages import ANSWER_TYPES, INCOMING_TYPES, LAYOUTS, MalformedMessage, noun_of, sizes_by_code
from matching_engine.engine import HandleStop, MatchingEngine
from transports.frames import LARGEST_FRAME, Bytes, FrameBatch, Longs

BATCH_ORDERS = 1 << 12
ANSWER_BYTES = 1 << 22
SMALLEST_ANSWER_BYTES = min(LAYOUTS[answer_type].size for answer_type in ANSWER_TYPES)

_SIZE_OF_ORDER = sizes_by_code(INCOMING_TYPES)


@cached_kernel(messages)
def _write_offsets(records: Bytes, sizes: Longs, offsets: Longs) -> int:
    """Write where each whole record ends. Returns how many whole records there are."""
    count = 0
    at = 0
    while at < len(records):
        size = sizes[records[at]]
        if size == 0 or at + size > len(records):
            break
        at += size
        count += 1
        offsets[count] = at
    return count


def offsets_of(records: Bytes, sizes: Longs) -> Longs:
    """Return the offsets of the whole records, and the end of the last one. `sizes` are record sizes by type byte."""
    smallest_record = int(sizes[sizes > 0].min())
    most_records = len(records) // smallest_record + 1
    offsets = np.zeros(most_records + 1, np.int64)  # one more for the end
    count = _write_offsets(records, sizes, offsets)
    return offsets[: count + 1]


def order_offsets(tape: Bytes) -> Longs:
    """Return the offsets of the tape's records and its end, shape (records + 1,).

    MalformedMessage, with the offset, if the bytes are no tape.
    """
    if len(tape) == 0:
        raise MalformedMessage("the tape is empty")
    offsets = offsets_of(tape, _SIZE_OF_ORDER)
    end = int(offsets[-1])
    if end < len(tape):
        kind = int(tape[end])
        size = _SIZE_OF_ORDER[kind]
        if size > 0:
            raise MalformedMessage(f"truncated: {len(tape) - end} of {size} bytes", end)
        *first, last = (f"{LAYOUTS[message].code} ({noun_of(message)})" for message in INCOMING_TYPES)
        allowed = f"{', '.join(first)} or {last}"
        raise MalformedMessage(f"type byte {kind}, where {allowed} goes", end)
    return offsets


def batches(tape: Bytes, offsets: Longs) -> Iterator[FrameBatch]:
    """Yield the tape as batches of frames that share its memory."""
    for first in range(0, len(offsets) - 1, BATCH_ORDERS):
        offsets_of_batch = offsets[first : first + BATCH_ORDERS + 1]
        start = offsets_of_batch[0]
        batch = FrameBatch(1, LARGEST_FRAME)  # its own memory is replaced by the tape's
        batch.buffer = tape[start:]
        batch.offsets = offsets_of_batch - start
        batch.count = len(offsets_of_batch) - 1
        yield batch


def match_tape(engine: MatchingEngine, tape: Bytes, take: Callable[[Bytes], None]) -> float:
    """Match the whole tape, and give the answers' bytes to `take`.

    Returns the seconds that decoding, matching and encoding took.
    """
    answers = FrameBatch(ANSWER_BYTES // SMALLEST_ANSWER_BYTES, ANSWER_BYTES)
    elapsed_ns = 0
    offsets = order_offsets(tape)
    for orders in batches(tape, offsets):
        first = 0
        stop = HandleStop.ROOM
        while stop is not HandleStop.DONE:
            answers.clear()
            start_ns = time.perf_counter_ns()
            first, stop = engine.handle(orders, answers, first)
            elapsed_ns += time.perf_counter_ns() - start_ns
            take(answers.span(0, answers.count))
            if stop is HandleStop.FOREIGN:
                raise MalformedMessage("an order with an instrument, and the engine has one book, without instruments")
    return elapsed_ns / 1e9
