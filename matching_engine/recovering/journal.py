"""The engine's input journal: every order, in a file, before its answers leave.

An engine is a function of its orders, so a new one that matches the journal again makes the same book and the same
answers, byte by byte. The file begins with MAGIC and a JSON document that says whose orders they are; records follow,
see `journal_records.py`. What `append` wrote survives the death of the process; `sync` says when it survives that of
the machine:

    always   before the answers leave; one fdatasync for all orders that came together
    batch    within 10 ms and the time of a sync; a thread does it, so that no order waits for the disk
    none     when the system writes it
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
    """Another engine has the journal, and lives."""


class JournalFailed(OSError):
    """The journal cannot be written or synced; a sentence for the user."""


def _opened(path: Path) -> int:
    """A descriptor of the journal's file, made where it is missing. JournalRefused for a link, or no regular file."""
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
    """One engine's journal, which it alone may write. `session` began last.

    `identity` must be the same whenever the file is opened. `on_cut` takes a sentence where the file's end was damaged.
    A `reader` that has read it before this reads the rest, and `on_orders` takes what that finds.
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
        """See journal_records.py."""
        self.session = 0
        """The number of the last session that began."""
        self.cut_bytes = 0
        self.syncs = 0
        self._synced_bytes = 0
        self._thread: threading.Thread | None = None
        self._trouble: JournalFailed | None = None
        path.parent.mkdir(parents=True, exist_ok=True)
        self._descriptor = _opened(path)
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
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise JournalIsOthers(f"{self.path} is the journal of an engine that runs: choose another folder") from None

    def _begin(self, identity: Mapping[str, Any]) -> int:
        """Check the identity, or write it into a new file. Returns where the records begin."""
        document = orjson.dumps(dict(identity))
        head = HEAD.pack(MAGIC, len(document), crc32c(np.frombuffer(document, np.uint8))) + document
        beginning = os.pread(self._descriptor, len(head) + 4096, 0)
        if len(beginning) < len(head) and head.startswith(beginning):  # new, or its engine died while it began
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, head, 0)
            self._sync_now(and_folder=True)
            return len(head)
        return self._check(beginning, identity)

    def _check(self, beginning: bytes, identity: Mapping[str, Any]) -> int:
        """Check the file's beginning. Returns where its head ends; JournalRefused if it is of another run."""
        if len(beginning) < HEAD.size or not beginning.startswith(MAGIC[:6]):
            raise JournalRefused(f"{self.path} is no journal: choose another folder")
        magic, size, checksum = HEAD.unpack_from(beginning)
        document = beginning[HEAD.size : HEAD.size + size]
        if magic != MAGIC:
            theirs, ours = magic[6:].decode(errors="replace"), MAGIC[6:].decode()
            raise JournalRefused(f"{self.path} is a journal of version {theirs}, and this is {ours}: choose another")
        if crc32c(np.frombuffer(document, np.uint8)) != checksum:
            raise JournalRefused(f"{self.path} is damaged at offset {HEAD.size}: its head cannot be read")
        theirs = orjson.loads(document)
        differences = [
            f"{name} {theirs.get(name)} (here {value})" for name, value in identity.items() if theirs.get(name) != value
        ]
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
        """Read the rest; cut a torn tail. JournalRefused, with the offset, where damage has orders behind it."""
        reader.at = max(reader.at, self._first)
        data = self._map()
        before = reader.orders
        for orders in reader.batches(data):
            on_orders(orders)
        self.numbers[ORDERS] = reader.orders
        self.session = reader.session
        good = reader.at
        if not before:  # no snapshot was of use, so none must be of use to the next engine
            snapshot_path(self.path).unlink(missing_ok=True)
        if good == len(data):
            return good
        behind = find_record(data, good + 1, self.orders)
        rest = len(data) - good
        if behind >= 0 and not salvage:
            raise JournalRefused(
                f"{self.path} is damaged at offset {good:,}, behind order {self.orders:,}, and has orders again at "
                f"{behind:,}: --salvage goes on with the {self.orders:,} orders, and keeps the rest in a file"
            )
        rest_path = self._new_rest_path()
        if behind >= 0:
            rest_path.write_bytes(data[good:].tobytes())
        del data
        os.ftruncate(self._descriptor, good)
        self.cut_bytes = rest
        where = f", which are in {rest_path.name}" if behind >= 0 else ""
        on_cut(f"{self.path}: cut {rest:,} bytes behind order {self.orders:,}{where}")
        return good

    def _new_rest_path(self) -> Path:
        """A file that is not there yet, for what is cut off."""
        names = (f"{self.path.name}.rest{number}" for number in ("", *range(2, 1000)))
        return next(path for path in map(self.path.with_name, names) if not path.exists())

    def _map(self) -> Bytes:
        """The file's bytes as they are now."""
        return np.memmap(self.path, np.uint8, "r")

    def batches(self) -> Iterator[FrameBatch]:
        """All orders from the first, as frames; a batch holds until the next one is asked for.

        JournalRefused, with the offset, if they are damaged where nobody read since a snapshot.
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
        """Keep frames of orders. JournalFailed where the disk is full: none of them is kept."""
        self._append(orders)
        if self._sync == "always":
            self._sync_now()

    def begin(self, theirs: Resume) -> None:
        """Note that a session begins, on the disk whatever `sync` says: a broker may deliver its start once more."""
        self._append(np.frombuffer(bytearray(encode(theirs)), np.uint8))
        self.session = theirs.session
        self._sync_now()

    def _append(self, orders: Bytes) -> None:
        size = HEADER_BYTES + len(orders)
        if size > len(self._record):
            self._record = np.zeros(2 * size, np.uint8)
        if not append_record(self.numbers, self._record, orders, 0, len(orders)):
            self._refuse(size)

    def _refuse(self, size: int) -> NoReturn:
        """Leave nothing of a record that could not be written. JournalFailed, with the reason."""
        self.check()
        number = errno.ENOSPC
        try:
            os.pwrite(self._descriptor, self._record[:size].data, self.numbers[SIZE])
        except OSError as error:
            number = error.errno or number
        os.ftruncate(self._descriptor, self.numbers[SIZE])
        reason = os.strerror(number)
        raise JournalFailed(f"cannot write {self.path}: {reason}; orders behind {self.orders:,} are refused")

    def start_syncing(self, spawn: Callable[[Callable[[], None]], Any] | None = None) -> None:
        """From now on sync within 10 ms, if that is asked for; `spawn` runs a function beside the engine."""
        if self._sync == "batch":
            (spawn or self._start_thread)(self._keep_synced)

    def _start_thread(self, run: Callable[[], None]) -> None:
        self._thread = threading.Thread(target=run, name="journal", daemon=True)
        self._thread.start()

    def _keep_synced(self) -> None:
        """Sync until the journal is closed, or cannot be synced."""
        if self._thread and sys.platform == "linux":
            with contextlib.suppress(OSError):  # where it is allowed: it takes no processor from an order
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
        """The journal in a result."""
        return {
            "orders": self.orders,
            "bytes": int(self.numbers[SIZE]),
            "sync": self._sync,
            "syncs": self.syncs,
            "cut_bytes": self.cut_bytes,
        }

    def close(self) -> None:
        """Write what is unwritten, and release the file for another engine."""
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
