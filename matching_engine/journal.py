"""The engine's input journal: every order, in a file, before its answers leave.

An engine is a function of its orders, so a new one that matches the journal again makes the same book and the same
answers, byte by byte. The file begins with MAGIC and a JSON document that says whose orders they are; records follow,
see `journal_records.py`. What `append` wrote survives the death of the process; `sync` says when it survives that of
the machine:

    always   before the answers leave; one fdatasync for all orders that came together
    batch    within 10 ms
    none     when the system writes it
"""

from __future__ import annotations

import errno
import fcntl
import os
import struct
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from exchange.messages import Resume, encode
from matching_engine.journal_records import (
    HEADER_BYTES,
    ROOM,
    crc32c,
    find_record,
    read_records,
    write_record,
)
from transports.frames import Bytes, FrameBatch

MAGIC = b"EXJRNL01"
HEAD = struct.Struct("<8sII")
"""MAGIC, the bytes of the document behind it, and their CRC32C."""
SYNC_EVERY_NS = 10_000_000
NEVER_NS = 2**62
REPLAY_BYTES, REPLAY_FRAMES = 1 << 23, 1 << 21


class JournalRefused(Exception):
    """A journal that cannot be used; a sentence for the user: which file, why, what to do."""


class InputJournal:
    """One engine's journal, which it alone may write. `orders` counts what is in it; `session` began last.

    `identity` must be the same whenever the file is opened. `on_cut` takes a sentence where the file's end was damaged.
    """

    def __init__(
        self, path: Path, identity: Mapping[str, Any], packing: int = 1, sync: str = "batch", salvage: bool = False,
        on_cut: Callable[[str], None] = lambda sentence: None,
    ) -> None:  # fmt: skip
        self.path, self._packing, self._sync = path, packing, sync
        self._record = np.zeros(HEADER_BYTES, np.uint8)
        self.orders = self.session = self.cut_bytes = self.syncs = 0
        self.next_sync_ns = NEVER_NS
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("ab+", buffering=0)
        try:
            self._lock()
            self._first = self._begin(identity)
            self._size = self._verify(salvage, on_cut)
        except BaseException:
            self._file.close()
            raise

    def _lock(self) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise JournalRefused(f"{self.path} is the journal of an engine that runs: choose another folder") from None

    def _begin(self, identity: Mapping[str, Any]) -> int:
        """Check the identity, or write it into a new file. Returns where the records begin."""
        document = orjson.dumps(dict(identity))
        head = HEAD.pack(MAGIC, len(document), crc32c(np.frombuffer(document, np.uint8))) + document
        found = os.pread(self._file.fileno(), len(head) + 4096, 0)
        if len(found) < HEAD.size or (len(found) < len(head) and head.startswith(found)):  # it died while it began
            os.ftruncate(self._file.fileno(), 0)
            self._file.write(head)
            self._sync_now(and_folder=True)
            return len(head)
        return self._check(found, identity)

    def _check(self, found: bytes, identity: Mapping[str, Any]) -> int:
        """Returns where the head of the file ends."""
        magic, size, checksum = HEAD.unpack_from(found)
        document = found[HEAD.size : HEAD.size + size]
        if magic[:6] != MAGIC[:6]:
            raise JournalRefused(f"{self.path} is no journal: choose another folder")
        if magic != MAGIC:
            theirs, ours = magic[6:].decode(errors="replace"), MAGIC[6:].decode()
            raise JournalRefused(f"{self.path} is a journal of version {theirs}, and this is {ours}: choose another")
        if crc32c(np.frombuffer(document, np.uint8)) != checksum:
            raise JournalRefused(f"{self.path} is damaged at offset {HEAD.size}: its head cannot be read")
        theirs = orjson.loads(document)
        if differs := [f"{name} {theirs.get(name)} (here {value})" for name, value in identity.items()
                       if theirs.get(name) != value]:  # fmt: skip
            raise JournalRefused(f"{self.path} is of another run, with {', '.join(differs)}: choose another folder")
        return HEAD.size + len(document)

    def _verify(self, salvage: bool, on_cut: Callable[[str], None]) -> int:
        """Read everything; cut a torn tail. JournalRefused, with the offset, where damage has orders behind it."""
        good, data = self._first, self._map()
        for _ in self._read(data):
            good = self._at
        self.orders, good = self._sequence, self._at
        if good == len(data):
            return good
        behind, rest = find_record(data, good + 1, self.orders), len(data) - good
        if behind >= 0 and not salvage:
            raise JournalRefused(
                f"{self.path} is damaged at offset {good:,}, behind order {self.orders:,}, and has orders again at "
                f"{behind:,}: --salvage goes on with the {self.orders:,} orders, and keeps the rest in a file"
            )
        if behind >= 0:
            self._rest_path.write_bytes(data[good:].tobytes())
        del data
        os.ftruncate(self._file.fileno(), good)
        self.cut_bytes = rest
        where = f", which are in {self._rest_path.name}" if behind >= 0 else ""
        on_cut(f"{self.path}: cut {rest:,} bytes behind order {self.orders:,}{where}")
        return good

    @property
    def _rest_path(self) -> Path:
        return self.path.with_name(self.path.name + ".rest")

    def _map(self) -> Bytes:
        """The file's bytes as they are now."""
        return np.memmap(self.path, np.uint8, "r")

    def _read(self, data: Bytes) -> Iterator[FrameBatch]:
        """The orders as frames; `_at` and `_sequence` say how far the good records reach."""
        batch, why = FrameBatch(REPLAY_FRAMES, REPLAY_BYTES), ROOM
        self._at, self._sequence, session = self._first, 0, 0
        while why == ROOM:
            self._at, self._sequence, session, batch.count, why = read_records(
                data, self._at, self._sequence, session, self._packing, batch.buffer, batch.offsets
            )
            self.session = max(self.session, session)
            yield batch

    def batches(self) -> Iterator[FrameBatch]:
        """All orders from the first, as frames; a batch holds until the next one is asked for."""
        if self.orders:
            yield from self._read(self._map()[: self._size])

    def append(self, orders: Bytes) -> None:
        """Keep frames of orders. OSError, with a sentence, where the disk is full: none of them is kept."""
        self._append(orders)
        if self._sync == "always":
            self._sync_now()
        elif self._sync == "batch" and self.next_sync_ns == NEVER_NS:
            self.next_sync_ns = time.monotonic_ns() + SYNC_EVERY_NS

    def begin(self, theirs: Resume) -> None:
        """Note that a session begins, on the disk whatever `sync` says: a broker may deliver its start once more."""
        self._append(np.frombuffer(encode(theirs), np.uint8))
        self.session = theirs.session
        self._sync_now(at_once=True)

    def _append(self, orders: Bytes) -> None:
        if HEADER_BYTES + len(orders) > len(self._record):
            self._record = np.zeros(2 * (HEADER_BYTES + len(orders)), np.uint8)
        size, count = write_record(self._record, orders, self.orders)
        self._write(size)
        self._size += size
        self.orders += count

    def _write(self, size: int) -> None:
        """Write a record, or nothing."""
        try:
            written = self._file.write(self._record[:size].data)
            if written != size:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:
            os.ftruncate(self._file.fileno(), self._size)
            raise OSError(
                f"cannot write {self.path}: {error.strerror}; orders behind {self.orders:,} are refused"
            ) from error

    def sync_if_due(self, now_ns: int) -> None:
        if now_ns >= self.next_sync_ns:
            self.next_sync_ns = NEVER_NS
            self._sync_now()

    def _sync_now(self, and_folder: bool = False, at_once: bool = False) -> None:
        if self._sync == "none" and not at_once:
            return
        try:
            os.fdatasync(self._file.fileno())
        except OSError as error:
            raise OSError(f"cannot sync {self.path}: {error.strerror}") from error
        self.syncs += 1
        if and_folder:
            folder = os.open(self.path.parent, os.O_RDONLY)
            os.fsync(folder)
            os.close(folder)

    def facts(self) -> dict[str, Any]:
        """What a result says of it."""
        return {"orders": self.orders, "bytes": self._size, "sync": self._sync, "syncs": self.syncs,
                "cut_bytes": self.cut_bytes}  # fmt: skip

    def warm(self) -> None:
        """Compile the kernels, or load them from disk."""
        nothing = np.zeros(HEADER_BYTES, np.uint8)
        write_record(nothing, nothing[:0], 0)
        find_record(nothing[:0], 0, 0)

    def close(self) -> None:
        """Write what is left, and let another engine have the file."""
        if not self._file.closed:
            if self._sync != "none":
                self._sync_now()
            self._file.close()
