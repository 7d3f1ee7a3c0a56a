"""The engine's input journal: a file that gets every order before its answers leave.

An engine's book and answers follow from its orders. So a new engine that matches the journal again makes the same book
and the same answers, byte by byte. The file begins with MAGIC and a JSON document that says to which run and engine the
orders belong. The records follow; see `journal_records.py`. What `append` has written survives the death of the
process. `sync` says when it also survives the death of the machine:

    always   before the answers leave: one fdatasync for all orders that came together
    batch    within 10 ms and the time of a sync: a thread syncs, so that no order waits for the disk
    none     when the system writes the file
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import orjson

from exchange.messages import Resume, encode
from matching_engine.recovering.journal_records import (
    DESCRIPTOR,
    HEAD,
    HEADER_BYTES,
    NUMBERS,
    ORDERS,
    SIZE,
    TROUBLE,
    JournalReader,
    append_record,
    crc32c,
    find_record,
    snapshot_path,
)
from matching_engine.turns import OrderStore
from transports.frames import Bytes, FrameBatch, Longs

MAGIC = b"EXJRNL01"
SYNC_EVERY_S = 0.01


class JournalRefused(Exception):
    """A journal that cannot be used; a sentence for the user: which file, why, what to do."""


class JournalIsOthers(JournalRefused):
    """Another engine, which is alive, has the journal."""


class JournalFailed(OSError):
    """The journal cannot be written or synced; a sentence for the user."""


def _open(path: Path) -> int:
    """Open the journal's file, or make it, and return its descriptor. JournalRefused unless it is a regular file."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise JournalRefused(f"{path} is a symbolic link: a journal is a file of its own; name another") from error
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise JournalRefused(f"{path} is no regular file: name another for the journal")
    return descriptor


class InputJournal:
    """One engine's journal, which no other process may write meanwhile.

    `identity` must be the same whenever the file is opened. `on_cut` is called with a sentence if a damaged end was cut
    off. If a `reader` has read a part of the journal already, it reads the rest, and `on_orders` is called with batches
    of the orders in the rest.
    """

    def __init__(
        self,
        path: Path,
        identity: Mapping[str, Any],
        packing: int = 1,
        sync: str = "batch",
        salvage: bool = False,
        on_cut: Callable[[str], None] = lambda sentence: None,
        reader: JournalReader | None = None,
        on_orders: Callable[[FrameBatch], None] = lambda orders: None,
    ) -> None:
        self.path = path
        self._packing = packing
        self._sync = sync
        self._record: Bytes = np.zeros(1 << 18, np.uint8)
        self.numbers: Longs = np.zeros(NUMBERS, np.int64)
        """Numbers that the kernels share; journal_records.py names their places."""
        self.session = 0
        """The number of the last session that began."""
        self.cut_bytes = 0
        self.syncs = 0
        self._synced_bytes = 0
        self._thread: threading.Thread | None = None
        self._trouble: JournalFailed | None = None
        path.parent.mkdir(parents=True, exist_ok=True)
        self._descriptor = _open(path)
        self.numbers[DESCRIPTOR] = self._descriptor
        try:
            self._lock()
            self._first = self._begin(identity)
            self.numbers[SIZE] = self._verify(reader or JournalReader(packing), on_orders, salvage, on_cut)
        except BaseException:
            self.abandon()
            raise

    @property
    def orders(self) -> int:
        """Number of orders in the journal."""
        return int(self.numbers[ORDERS])

    @property
    def may_be_written_by_turns(self) -> bool:
        """Whether compiled turns may write the journal: with `always`, Python has to sync before an answer leaves."""
        return self._sync != "always"

    def _lock(self) -> None:
        """Lock the file. JournalIsOthers if another engine has the lock."""
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise JournalIsOthers(f"{self.path} is the journal of an engine that runs: choose another folder") from None

    def _begin(self, identity: Mapping[str, Any]) -> int:
        """Check the identity, or write it into a new file. Returns where the records begin."""
        document = orjson.dumps(dict(identity))
        head = HEAD.pack(MAGIC, len(document), crc32c(np.frombuffer(document, np.uint8))) + document
        beginning = os.pread(self._descriptor, len(head) + 4096, 0)
        if len(beginning) < len(head) and head.startswith(beginning):  # a new file, or its engine died as it began it
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, head, 0)
            self._sync_now(and_folder=True)
            return len(head)
        return self._check(beginning, identity)

    def _check(self, beginning: bytes, identity: Mapping[str, Any]) -> int:
        """Check the file's beginning. Returns where its head ends. JournalRefused if the journal is of another run."""
        if len(beginning) < HEAD.size or not beginning.startswith(MAGIC[:6]):
            raise JournalRefused(f"{self.path} is no journal: choose another folder")
        magic, size, checksum = HEAD.unpack_from(beginning)
        document = beginning[HEAD.size : HEAD.size + size]
        if magic != MAGIC:
            theirs = magic[6:].decode(errors="replace")
            ours = MAGIC[6:].decode()
            raise JournalRefused(f"{self.path} is a journal of version {theirs}, and this is {ours}: choose another")
        if crc32c(np.frombuffer(document, np.uint8)) != checksum:
            raise JournalRefused(f"{self.path} is damaged at offset {HEAD.size}: its head cannot be read")
        theirs = orjson.loads(document)
        differences: list[str] = []
        for name, value in identity.items():
            if theirs.get(name) != value:
                differences.append(f"{name} {theirs.get(name)} (here {value})")
        if differences:
            raise JournalRefused(f"{self.path} is of another run, with {', '.join(differences)}: choose another folder")
        return HEAD.size + len(document)

    def _verify(
        self,
        reader: JournalReader,
        on_orders: Callable[[FrameBatch], None],
        salvage: bool,
        on_cut: Callable[[str], None],
    ) -> int:
        """Read the records, and cut off a torn end. Returns where the records end.

        JournalRefused, with the offset, if there are whole records after a damaged one. With `salvage` the records
        after the damage are moved into another file instead.
        """
        reader.at = max(reader.at, self._first)
        data = self._map()
        has_snapshot = reader.orders > 0
        for orders in reader.batches(data):
            on_orders(orders)
        self.numbers[ORDERS] = reader.orders
        self.session = reader.session
        end = reader.at
        if not has_snapshot:  # the snapshot, if there is one, did not fit, and must not fit by chance later
            snapshot_path(self.path).unlink(missing_ok=True)
        if end == len(data):
            return end
        next_record = find_record(data, end + 1, self.orders)
        has_orders_behind = next_record >= 0
        rest_bytes = len(data) - end
        if has_orders_behind and not salvage:
            raise JournalRefused(
                f"{self.path} is damaged at offset {end:,}, behind order {self.orders:,}, and has orders again at "
                f"{next_record:,}: --salvage goes on with the {self.orders:,} orders, and keeps the rest in a file"
            )
        sentence = f"{self.path}: cut {rest_bytes:,} bytes behind order {self.orders:,}"
        if has_orders_behind:
            rest_path = self._new_rest_path()
            rest_path.write_bytes(data[end:].tobytes())
            sentence += f", which are in {rest_path.name}"
        del data  # unmap the file before it is cut
        os.ftruncate(self._descriptor, end)
        self.cut_bytes = rest_bytes
        on_cut(sentence)
        return end

    def _new_rest_path(self) -> Path:
        """Return a file that does not exist yet, for the part that is cut off: journal.rest, journal.rest2, ..."""
        path = self.path.with_name(f"{self.path.name}.rest")
        number = 2
        while path.exists():
            path = self.path.with_name(f"{self.path.name}.rest{number}")
            number += 1
        return path

    def _map(self) -> Bytes:
        """The file's bytes as they are now."""
        return np.memmap(self.path, np.uint8, "r")

    def batches(self) -> Iterator[FrameBatch]:
        """Yield all orders from the first on, as frames. A batch is valid until the next one is taken.

        JournalRefused, with the offset, if records are damaged in the part before a snapshot, which was not read yet.
        """
        if self.orders:
            reader = JournalReader(self._packing)
            reader.at = self._first
            yield from reader.batches(self._map()[: self.numbers[SIZE]])
            if reader.at < self.numbers[SIZE]:
                raise JournalRefused(
                    f"{self.path} is damaged at offset {reader.at:,}, behind order {reader.orders:,}, and its snapshot "
                    f"is of no use here: --salvage goes on with the {reader.orders:,} orders"
                )

    @property
    def order_store(self) -> OrderStore:
        """The compiled function that writes orders, for compiled turns, with its first arguments."""
        return append_record, self.numbers, self._record

    def append(self, orders: Bytes) -> None:
        """Write frames of orders. JournalFailed if they cannot be written; then none of them is in the journal."""
        self._append(orders)
        if self._sync == "always":
            self._sync_now()

    def begin(self, theirs: Resume) -> None:
        """Write that a session begins, and sync whatever `sync` says: a broker may deliver the start again."""
        self._append(np.frombuffer(bytearray(encode(theirs)), np.uint8))
        self.session = theirs.session
        self._sync_now()

    def _append(self, orders: Bytes) -> None:
        """Write a record. JournalFailed if it cannot be written."""
        size = HEADER_BYTES + len(orders)
        if size > len(self._record):
            self._record = np.zeros(2 * size, np.uint8)
        if not append_record(self.numbers, self._record, orders, 0, len(orders)):
            self._refuse(size)

    def _refuse(self, size: int) -> NoReturn:
        """Remove the remains of a record that could not be written. Raises JournalFailed, with the reason."""
        self.check()
        number = errno.ENOSPC
        try:  # write again, since the kernel's call does not tell its error
            os.pwrite(self._descriptor, self._record[:size].data, self.numbers[SIZE])
        except OSError as error:
            number = error.errno or number
        os.ftruncate(self._descriptor, self.numbers[SIZE])
        reason = os.strerror(number)
        raise JournalFailed(f"cannot write {self.path}: {reason}; orders behind {self.orders:,} are refused")

    def start_syncing(self, spawn: Callable[[Callable[[], None]], Any] | None = None) -> None:
        """Sync within 10 ms from now on, if `sync` is batch. `spawn` runs a function aside: in a thread by default."""
        if self._sync != "batch":
            return
        if spawn is None:
            spawn = self._start_thread
        spawn(self._keep_synced)

    def _start_thread(self, run: Callable[[], None]) -> None:
        self._thread = threading.Thread(target=run, name="journal", daemon=True)
        self._thread.start()

    def _keep_synced(self) -> None:
        """Sync again and again, until the journal is closed or cannot be synced."""
        if self._thread and sys.platform == "linux":
            with contextlib.suppress(OSError):  # if it is allowed: a batch thread takes no processor from an order
                os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
        while self._descriptor >= 0:
            time.sleep(SYNC_EVERY_S)
            try:
                if self._descriptor >= 0 and self._synced_bytes < self.numbers[SIZE]:
                    self._sync_now()
            except JournalFailed as error:
                self._trouble = error
                self.numbers[TROUBLE] = 1
                return

    def check(self) -> None:
        """Raise JournalFailed if the journal could not be synced."""
        if self._trouble:
            raise self._trouble

    def _sync_now(self, and_folder: bool = False) -> None:
        size = int(self.numbers[SIZE])
        try:
            os.fdatasync(self._descriptor)
        except OSError as error:
            raise JournalFailed(f"cannot sync {self.path}: {error.strerror}") from error
        self._synced_bytes = size
        self.syncs += 1
        if and_folder:
            folder = os.open(self.path.parent, os.O_RDONLY)
            os.fsync(folder)
            os.close(folder)

    def facts(self) -> dict[str, Any]:
        """Return the journal's part of a result."""
        return {
            "orders": self.orders,
            "bytes": int(self.numbers[SIZE]),
            "sync": self._sync,
            "syncs": self.syncs,
            "cut_bytes": self.cut_bytes,
        }

    def close(self) -> None:
        """Sync the file unless `sync` is none, and release it for another engine."""
        if self._descriptor >= 0:
            if self._sync != "none":
                self._sync_now()
            self.abandon()

    def abandon(self) -> None:
        """Release the file as it is, as the death of the process would."""
        descriptor = self._descriptor
        self._descriptor = -1
        if self._thread:
            self._thread.join()
        if descriptor >= 0:
            os.close(descriptor)
