"""TCP in a packet capture: segments and payload of each direction of each connection.

The file is pcap's classic one, as `tcpdump -w` writes it. A segment is a frame: what the kernel hands a network card,
or loopback, in one piece is captured as one, though the kernel's own counters count every full segment in it.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from runs.packets.headers import BEFORE_IP, BadCapture, Ends, Segment, segment
from transports.sockets import address_name

FILE_HEADER, FRAME_HEADER = 24, 16  # bytes
LONGEST_FRAME = 1 << 18  # bytes that are kept of a frame, at most: tcpdump's own limit
FORMATS = {
    b"\xd4\xc3\xb2\xa1": ("<", 1000), b"\xa1\xb2\xc3\xd4": (">", 1000),
    b"\x4d\x3c\xb2\xa1": ("<", 1), b"\xa1\xb2\x3c\x4d": (">", 1),
}  # fmt: skip
"""By the file's first bytes: the order of a number's bytes, and the nanoseconds in a time stamp's fraction."""

Direction = tuple[str, str]
"""Source and destination, as 127.0.0.1:4711 or [::1]:4711."""
Content = bytes | mmap.mmap


@dataclass(frozen=True)
class Traffic:
    """What one end sent to the other. Wire bytes are IP packets without the link's header; times are since 1970."""

    segments: int
    payload_bytes: int
    wire_bytes: int
    first_ns: int
    last_ns: int


def counts(path: Path) -> dict[Direction, Traffic]:
    """The traffic of each direction; BadCapture where the file is none, or ends inside a frame."""
    size = path.stat().st_size
    if size < FILE_HEADER:
        raise BadCapture(f"{path} is no packet capture: it has {size} bytes")
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        return counted(content)


def counted(content: Content) -> dict[Direction, Traffic]:
    """The same of a capture in memory."""
    order, unit_ns, link = _format(content)
    sums: dict[Ends, list[int]] = {}
    for time_ns, on_wire, frame in _frames(content, order, unit_ns):
        if sent := segment(frame, link, on_wire):
            _add(sums, sent, time_ns)
    return {_direction(ends): Traffic(*of_it) for ends, of_it in sums.items()}


def _format(content: Content) -> tuple[str, int, int]:
    """Byte order, nanoseconds in a unit, link type."""
    if len(content) < FILE_HEADER or content[:4] not in FORMATS:
        raise BadCapture("no packet capture of pcap's classic format, as tcpdump -w writes it")
    order, unit_ns = FORMATS[content[:4]]
    link = struct.unpack_from(f"{order}I", content, 20)[0] & 0xFFFF
    if link not in BEFORE_IP:
        raise BadCapture(f"a capture of link type {link}; known are {', '.join(map(str, BEFORE_IP))}")
    return order, unit_ns, link


def _frames(content: Content, order: str, unit_ns: int) -> Iterator[tuple[int, int, bytes]]:
    """Time, length on the wire, and what was kept of each frame."""
    header = struct.Struct(f"{order}IIII")
    at, size = FILE_HEADER, len(content)
    while at < size:
        if at + FRAME_HEADER > size:
            raise BadCapture(f"the capture ends inside a frame's header, at byte {at}")
        seconds, fraction, kept, on_wire = header.unpack_from(content, at)
        at += FRAME_HEADER
        if kept > min(LONGEST_FRAME, size - at):
            raise BadCapture(f"the capture has a frame of {kept} bytes at byte {at} of {size}")
        yield seconds * 1_000_000_000 + fraction * unit_ns, on_wire, content[at : at + kept]
        at += kept


def _add(sums: dict[Ends, list[int]], sent: Segment, time_ns: int) -> None:
    """Traffic's fields in their order, while they grow."""
    so_far = sums.setdefault(sent.ends, [0, 0, 0, time_ns, time_ns])
    so_far[0] += 1
    so_far[1] += sent.payload_bytes
    so_far[2] += sent.wire_bytes
    so_far[3] = min(so_far[3], time_ns)
    so_far[4] = max(so_far[4], time_ns)


def _direction(ends: Ends) -> Direction:
    source, destination, ports = ends
    source_port, destination_port = struct.unpack(">HH", ports)
    return address_name(source, source_port), address_name(destination, destination_port)
