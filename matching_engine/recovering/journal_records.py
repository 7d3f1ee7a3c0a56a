"""Journal records as bytes: kernels write and read them, and JournalReader makes batches of frames of them.

A record is `sequence u64 | bytes u32 | CRC32C u32 | orders`, little-endian. `sequence` is the number of orders in the
journal before this record. The checksum covers everything else in the record. The orders are the received frames, one
after the other. Where a session begins, a record has a `Resume` in place of orders.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

import numpy as np
from numba import types

from exchange import messages
from exchange.compiled import (
    cached_kernel,
    field_reader,
    inlined,
    load_u8,
    load_u32,
    load_u64,
    signed,
    store_u32,
    store_u64,
)
from exchange.messages import INCOMING_TYPES, LAYOUTS, Resume, sizes_by_code
from matching_engine.turns import STORE
from transports.frames import Bytes, FrameBatch, Longs

HEAD = struct.Struct("<8sII")
"""The head of the file: a magic word, the size of the document after the head, and the document's CRC32C."""
HEADER_BYTES = 16
CHECKED_BYTES = 12
"""Bytes of the header before its checksum."""
MOST_BYTES = 1 << 22
"""Bytes of orders in a record; a longer one is damaged."""
REPLAY_BYTES = 1 << 23
REPLAY_FRAMES = 1 << 21
# The reasons for which `read_records` returns.
DONE = 0
"""All of the data was read."""
ROOM = 1
"""The batch is full."""
BAD = 2
"""The next record is not whole."""

# The places in the numbers of an open journal.
DESCRIPTOR = 0
"""The file's descriptor."""
ORDERS = 1
"""The number of orders in the journal."""
SIZE = 2
"""The number of bytes in the file."""
TROUBLE = 3
"""1 once the file cannot be synced, else 0."""
NUMBERS = 4
"""How many numbers there are."""
_pwrite = types.ExternalFunction("pwrite", types.intp(types.int32, types.voidptr, types.uintp, types.int64))

RESUME = LAYOUTS[Resume].code
_session_of = field_reader("session", Resume)
_SIZE_OF_ORDER = sizes_by_code(INCOMING_TYPES)
_SHORTEST = int(_SIZE_OF_ORDER[_SIZE_OF_ORDER > 0].min())
_POLYNOMIAL = 0x82F63B78  # CRC32C, bits reversed


def snapshot_path(journal: Path) -> Path:
    """Return the file of the snapshot that belongs to this journal."""
    return journal.with_suffix(".snapshot")


def _tables() -> Longs:
    """Return the tables of a CRC32C that takes eight bytes at once.

    `[k, byte]` is what a byte adds to the checksum if k more of the eight bytes follow it.
    """
    tables = np.zeros((8, 256), np.int64)
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = crc >> 1 ^ (_POLYNOMIAL if crc & 1 else 0)
        tables[0, byte] = crc
    for k in range(1, 8):
        tables[k] = tables[k - 1] >> 8 ^ tables[0, tables[k - 1] & 0xFF]
    return tables


_TABLES = _tables()


@inlined
def _crc(data: Bytes, at: int, end: int, crc: int) -> int:
    """Continue a CRC32C, whose first value is 0, over data[at:end]: eight bytes at a time, then one by one."""
    crc ^= 0xFFFFFFFF
    while at + 8 <= end:
        low = crc ^ signed(load_u32(data, at))
        high = signed(load_u32(data, at + 4))
        crc = _TABLES[7, low & 255] ^ _TABLES[6, low >> 8 & 255] ^ _TABLES[5, low >> 16 & 255] ^ _TABLES[4, low >> 24]
        crc ^= _TABLES[3, high & 255] ^ _TABLES[2, high >> 8 & 255] ^ _TABLES[1, high >> 16 & 255]
        crc ^= _TABLES[0, high >> 24]
        at += 8
    while at < end:
        crc = _TABLES[0, (crc ^ signed(load_u8(data, at))) & 255] ^ crc >> 8
        at += 1
    return crc ^ 0xFFFFFFFF


@inlined
def _record_crc(data: Bytes, at: int, size: int) -> int:
    """The checksum of the record at byte `at`, over everything but the checksum itself."""
    body = at + HEADER_BYTES
    return _crc(data, body, body + size, _crc(data, at, at + CHECKED_BYTES, 0))


@cached_kernel()
def crc32c(data: Bytes) -> int:
    """Return the CRC32C of all bytes."""
    return _crc(data, 0, len(data), 0)


@cached_kernel(messages, signature=STORE)
def append_record(numbers: Longs, record: Bytes, frames: Bytes, begin: int, end: int) -> bool:
    """Write frames[begin:end] into the file as a record, which is put together in the memory `record`.

    Returns False if writing fails: the record then does not count.
    """
    size = HEADER_BYTES + end - begin
    if size > len(record) or numbers[TROUBLE]:
        return False
    store_u64(record, 0, numbers[ORDERS])
    store_u32(record, 8, end - begin)
    record[HEADER_BYTES:size] = frames[begin:end]
    store_u32(record, CHECKED_BYTES, _record_crc(record, 0, end - begin))
    if _pwrite(numbers[DESCRIPTOR], record.ctypes, size, numbers[SIZE]) != size:
        return False
    numbers[SIZE] += size
    while begin < end and _SIZE_OF_ORDER[frames[begin]] > 0:
        begin += _SIZE_OF_ORDER[frames[begin]]
        numbers[ORDERS] += 1
    return True


@inlined
def _whole_record(data: Bytes, at: int, size: int) -> bool:
    """Return whether a whole record, with this many bytes of orders, begins at byte `at`."""
    is_possible = (size >= _SHORTEST) & (size <= MOST_BYTES) & (at + HEADER_BYTES + size <= len(data))
    return is_possible and _record_crc(data, at, size) == signed(load_u32(data, at + CHECKED_BYTES))


@cached_kernel(messages)
def read_records(
    data: Bytes, at: int, sequence: int, session: int, packing: int, buffer: Bytes, offsets: Longs
) -> tuple[int, int, int, int, int]:
    """Copy orders out of the records from byte `at` on, as frames of `packing` orders. A record's last may be shorter.

    Returns where the next record begins, how many orders are before it, the number of the session that began last, the
    number of frames, and DONE, ROOM or BAD.
    """
    frames = 0
    while at < len(data):
        if at + HEADER_BYTES > len(data) or signed(load_u64(data, at)) != sequence:
            return at, sequence, session, frames, BAD
        size = signed(load_u32(data, at + 8))
        if not _whole_record(data, at, size):
            return at, sequence, session, frames, BAD
        if load_u8(data, at + HEADER_BYTES) == RESUME:
            session = signed(_session_of(data, at + HEADER_BYTES))
            at += HEADER_BYTES + size
            continue
        start = offsets[frames]
        if start + size > len(buffer) or frames + size // _SHORTEST + 1 >= len(offsets):
            return at, sequence, session, frames, ROOM
        at += HEADER_BYTES
        buffer[start : start + size] = data[at : at + size]
        at += size
        end = start
        in_frame = 0
        while end < start + size:
            step = _SIZE_OF_ORDER[buffer[end]]
            if step == 0:
                return at - size - HEADER_BYTES, sequence, session, frames, BAD
            end += step
            sequence += 1
            in_frame += 1
            if in_frame == packing or end >= start + size:
                frames += 1
                offsets[frames] = end
                in_frame = 0
    return at, sequence, session, frames, DONE


@cached_kernel()
def find_record(data: Bytes, at: int, sequence: int) -> int:
    """Find the first whole record from byte `at` on that has `sequence` or more orders before it.

    Returns where the record begins; -1 if there is none.
    """
    while at + HEADER_BYTES < len(data):
        number = signed(load_u64(data, at))
        if sequence <= number < 1 << 32 and _whole_record(data, at, signed(load_u32(data, at + 8))):
            return at
        at += 1
    return -1


class JournalReader:
    """Reads the records of a journal one after the other."""

    def __init__(self, packing: int) -> None:
        self._packing = packing
        self.at = 0
        """The byte of the file at which the next record begins; 0 before the head was read."""
        self.orders = 0
        """Orders that were read so far."""
        self.session = 0
        """The number of the session that began last."""

    def has_begun(self, path: Path) -> bool:
        """Return whether the journal exists, with its head. The reader is then after the head, or further on."""
        if self.at == 0 and path.exists():
            with path.open("rb") as file:
                head = file.read(HEAD.size)
            if len(head) == HEAD.size:
                self.at = HEAD.size + HEAD.unpack(head)[1]
        return self.at > 0

    def batches(self, data: Bytes, data_at: int = 0) -> Iterator[FrameBatch]:
        """Yield the orders after `at` as frames, up to the first record that is not whole.

        `data_at` is the byte of the file at which the data begins. A batch is valid until the next one is taken.
        """
        why = ROOM
        while why == ROOM and self.at < data_at + len(data):
            batch = self._batch
            at, self.orders, session, batch.count, why = read_records(
                data, self.at - data_at, self.orders, self.session, self._packing, batch.buffer, batch.offsets
            )
            self.at = at + data_at
            self.session = max(self.session, session)
            yield batch

    @cached_property
    def _batch(self) -> FrameBatch:
        """The batch for all orders, made once: a standby reads 200 times a second, and a new batch takes 1 ms."""
        return FrameBatch(REPLAY_FRAMES, REPLAY_BYTES)
