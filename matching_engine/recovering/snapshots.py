"""Snapshots: an engine as it was behind some order of its journal, in a file beside that.

An engine that is started again begins with the snapshot, and matches only the orders behind it, however long the
journal is. So does a standby. Nothing depends on a snapshot: one that is torn, damaged, of another journal, or further
on than the journal is passed over, and the journal is matched from its first order. The file holds a head, numbers of
the journal, the states of both checksums, and the book's arena.
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

MAGIC = b"EXSNAP02"
HEAD = struct.Struct("<8sQ")
"""A magic word, and the CRC32C of everything behind the head."""
OF_JOURNAL = struct.Struct("<QQQQ")
"""The journal's bytes, orders, last session, and fingerprint when the snapshot was taken."""
TAIL_BYTES = 26
"""Bytes of the shortest record: so many before the snapshot's place are in the journal's fingerprint."""
EVERY_ORDERS = 1 << 22
"""Orders from one snapshot to the next: they are matched again in a fifth of a second."""
LARGEST_BYTES = 1 << 23
"""A book that had over a quarter of a million resting orders is larger. Its snapshot would delay orders by 12 ms."""


def write_snapshot(journal: InputJournal, engine: MatchingEngine, sums: Sums) -> None:
    """Replace the journal's snapshot by the engine as it is now, behind the last order. OSError where that fails.

    The file is not synced: what a power failure takes from it, its checksum finds missing.
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
    """Bring reader, engine and checksums to where the snapshot was taken. Without one that fits they stay as is."""
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
    ends = len(sums.orders.state), len(sums.orders.state) + len(sums.answers.state)
    with contextlib.suppress(ValueError):  # of a book with other room
        engine.book.load(state[ends[1] :].view(np.uint64).copy())
        sums.orders.state[:], sums.answers.state[:], _ = np.split(state, ends)
        reader.at = place
        reader.orders = orders
        reader.session = session


def _fingerprint(journal: Path, place: int) -> int:
    """Return a checksum of the journal's head and of its last bytes before a place. OSError if it cannot be read."""
    with journal.open("rb") as file:
        head = file.read(JOURNAL_HEAD.size)
        document_bytes = JOURNAL_HEAD.unpack(head)[1] if len(head) == JOURNAL_HEAD.size else 0
        head += file.read(document_bytes)
        file.seek(max(place - TAIL_BYTES, 0))
        tail = file.read(TAIL_BYTES)
    return crc32c(np.frombuffer(head + tail, np.uint8))
