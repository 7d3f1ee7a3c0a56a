"""Snapshots: the state of an engine after some order of its journal, in a file beside the journal.

An engine that is started again begins with the snapshot, and so does a standby. Then they match only the orders after
the snapshot, however long the journal is. Nothing depends on a snapshot. If it is torn, damaged, of another journal, or
newer than the end of the journal, it is ignored, and the journal is matched from its first order. The file holds a
head, numbers of the journal, the states of both checksums, and the book's arena.
"""

from __future__ import annotations

import contextlib
import os
import struct
from pathlib import Path

import numpy as np

from matching_engine.engine import MatchingEngine
from matching_engine.recovering.journal import InputJournal
from matching_engine.recovering.journal_records import HEAD as JOURNAL_HEAD
from matching_engine.recovering.journal_records import SIZE, JournalReader, crc32c, snapshot_path
from matching_engine.turns import Sums

MAGIC = b"EXSNAP03"
HEAD = struct.Struct("<8sQ")
"""A magic word, and the CRC32C of all bytes after the head."""
OF_JOURNAL = struct.Struct("<QQQQ")
"""The journal's bytes, orders, last session, and fingerprint when the snapshot was taken."""
TAIL_BYTES = 26
"""The size of the shortest record. The journal's fingerprint covers this many bytes before the snapshot's place."""
EVERY_ORDERS = 1 << 22
"""Orders from one snapshot to the next. To match them again takes a fifth of a second."""
LARGEST_BYTES = 1 << 23
"""A larger book gets no snapshot, which would delay orders by 12 ms: one with over 250,000 resting orders is larger."""


def write_snapshot(journal: InputJournal, engine: MatchingEngine, sums: Sums) -> None:
    """Replace the journal's snapshot by the engine's state now, after the last order. OSError if it cannot be written.

    The file is not synced: if a power failure takes a part of it, the checksum shows that.
    """
    place = int(journal.numbers[SIZE])
    of_journal = OF_JOURNAL.pack(place, journal.orders, journal.session, _fingerprint(journal.path, place))
    numbers = np.frombuffer(of_journal, np.uint8)
    arena = engine.book.arena.view(np.uint8)
    body = np.concatenate([numbers, sums.orders.state, sums.answers.state, arena])
    head = HEAD.pack(MAGIC, crc32c(body))
    path = snapshot_path(journal.path)
    unfinished = path.with_suffix(".unfinished")
    try:
        with open(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(head)
            file.write(body.data)
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def go_on_from_snapshot(journal: Path, reader: JournalReader, engine: MatchingEngine, sums: Sums) -> None:
    """Set reader, engine and checksums to the state in the snapshot. If no snapshot fits, they stay as they are."""
    try:
        data = np.fromfile(snapshot_path(journal), np.uint8)
        journal_bytes = journal.stat().st_size
    except OSError:
        return
    if len(data) < HEAD.size + OF_JOURNAL.size:
        return
    magic, checksum = HEAD.unpack_from(data.data)
    if magic != MAGIC or crc32c(data[HEAD.size :]) != checksum:
        return
    place, orders, session, fingerprint = OF_JOURNAL.unpack_from(data.data, HEAD.size)
    if place > journal_bytes or _fingerprint(journal, place) != fingerprint:
        return
    state = data[HEAD.size + OF_JOURNAL.size :]
    orders_end = len(sums.orders.state)
    answers_end = orders_end + len(sums.answers.state)
    with contextlib.suppress(ValueError):  # the arena is of a book with another capacity
        engine.book.load(state[answers_end:].view(np.uint64).copy())
        sums.orders.state[:] = state[:orders_end]
        sums.answers.state[:] = state[orders_end:answers_end]
        reader.at = place
        reader.orders = orders
        reader.session = session


def _fingerprint(journal: Path, place: int) -> int:
    """Return a checksum of the journal's head and of its last bytes before `place`. OSError if it cannot be read."""
    with journal.open("rb") as file:
        head = file.read(JOURNAL_HEAD.size)
        document_bytes = JOURNAL_HEAD.unpack(head)[1] if len(head) == JOURNAL_HEAD.size else 0
        head += file.read(document_bytes)
        file.seek(max(place - TAIL_BYTES, 0))
        tail = file.read(TAIL_BYTES)
    return crc32c(np.frombuffer(head + tail, np.uint8))
