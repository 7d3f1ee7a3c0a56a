"""Snapshots: an engine as it was behind some order of its journal, in a file beside that.

An engine that is started again begins with the snapshot, and matches only the orders behind it, however long the
journal is. So does a standby. Nothing depends on a snapshot: one that is torn, damaged, or further on than the journal
is passed over, and the journal is matched from its first order. The file holds a head, the states of both checksums,
and the book's arena.
"""

from __future__ import annotations

import contextlib
import os
import struct
from pathlib import Path

import numpy as np

from matching_engine.engine import MatchingEngine
from matching_engine.recovering.journal import InputJournal
from matching_engine.recovering.journal_records import SIZE, JournalReader, crc32c, snapshot_path
from matching_engine.turns import Sums

MAGIC = b"EXSNAP01"
HEAD = struct.Struct("<8sQQQQ")
"""A magic word; the CRC32C of everything behind the head; of the journal its bytes, orders, and last session."""
EVERY_ORDERS = 1 << 22
"""Orders from one snapshot to the next: they are matched again in a fifth of a second."""
LARGEST_BYTES = 1 << 23
"""A book that had over a quarter of a million resting orders is larger. Its snapshot would delay orders by 12 ms."""


def write_snapshot(journal: InputJournal, engine: MatchingEngine, sums: Sums) -> None:
    """Replace the journal's snapshot by the engine as it is now, behind the last order. OSError where that fails.

    The file is not synced: what a power failure takes from it, its checksum finds missing.
    """
    body = np.concatenate([sums.orders.state, sums.answers.state, engine.book.arena.view(np.uint8)])
    head = HEAD.pack(MAGIC, crc32c(body), int(journal.numbers[SIZE]), journal.orders, journal.session)
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
    if len(data) < HEAD.size:
        return
    magic, checksum, at, orders, session = HEAD.unpack_from(data.data)
    body = data[HEAD.size :]
    if magic == MAGIC and crc32c(body) == checksum and at <= journal_bytes:
        states = len(sums.orders.state), len(sums.orders.state) + len(sums.answers.state)
        with contextlib.suppress(ValueError):  # of a book with other room
            engine.book.load(body[states[1] :].view(np.uint64).copy())
            sums.orders.state[:], sums.answers.state[:], _ = np.split(body, states)
            reader.at, reader.orders, reader.session = at, orders, session
