"""Packet captures: TCP segments and payload of each direction of each connection, checked against the counters.

The file is pcap's classic one, as `tcpdump -w` writes it. A segment is a frame: what the kernel hands a network card,
or loopback, in one piece is captured as one, though the kernel's own counters count every full segment in it.
"""

from __future__ import annotations

import mmap
import struct
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from exchange_simulation.launching.packets.rows import PacketRow, packet_rows
from transports.sockets import address_name

FILE_HEADER, FRAME_HEADER = 24, 16  # bytes
LONGEST_FRAME = 1 << 18  # the most captured bytes of a frame: tcpdump's own limit
BYTE_ORDERS = {
    b"\xd4\xc3\xb2\xa1": "<",
    b"\xa1\xb2\xc3\xd4": ">",
    b"\x4d\x3c\xb2\xa1": "<",
    b"\xa1\xb2\x3c\x4d": ">",
}
"""The byte order by the file's first bytes, for time stamps in us and in ns."""

BEFORE_IP = {0: 4, 1: 14, 101: 0, 113: 16, 276: 20}
"""Bytes of a frame before its IP header, by link type: NULL, EN10MB, RAW, LINUX_SLL, LINUX_SLL2."""
ETHERTYPE_AT = {1: 12, 113: 14, 276: 0}
IP_ETHERTYPES = {b"\x08\x00", b"\x86\xdd"}
TCP = 6
OPTIONS = {0, 43, 60}
"""Types of the headers between IPv6's and TCP's: hop by hop, routing, destination."""
FRAGMENT = 44
TCP_LEAST = 20  # bytes
ENOUGH = 13  # bytes of a TCP header up to its length field

Direction = tuple[str, str]
"""Source and destination, as 127.0.0.1:4711 or [::1]:4711."""
Content = bytes | mmap.mmap
Ends = tuple[bytes, bytes, bytes]
"""(source address, destination address, both ports), as on the wire."""


@dataclass
class Traffic:
    """One end's segments to the other."""

    segments: int = 0
    payload_bytes: int = 0


class BadCapture(ValueError):
    """A sentence about a damaged or unknown capture."""


class Segment(NamedTuple):
    ends: Ends
    payload_bytes: int


class _Ip(NamedTuple):
    """An IP packet: `tcp_at` is the offset of TCP's header, `length` the packet's with its headers."""

    source: bytes
    destination: bytes
    tcp_at: int
    length: int


def compare_with_counters(
    record: Mapping[str, Any], capture: Path, tcpdump_counts: Mapping[str, int]
) -> dict[str, Any]:
    """run.json's `capture`: both counts of each captured direction, and tcpdump's own counts of packets.

    `off_by` is a share, 0 to 1, of the larger count. A capture also has handshakes and goodbyes, which a run's counters
    leave out, so a short run is off by more. Segments that leave in one piece are captured as one.
    """
    seen, problem = _traffic(capture)
    rows = [row for row in packet_rows(record) if (row.source, row.destination) in seen]
    directions = [_both(row, seen[row.source, row.destination]) for row in rows]
    off_by = {kind: _off_by(directions, kind) for kind in ("segments", "bytes")}
    return {"file": capture.name, **tcpdump_counts, "problem": problem, "off_by": off_by, "directions": directions}


def _off_by(directions: Sequence[Mapping[str, Any]], kind: str) -> float | None:
    """The error over all directions together; None if nothing was captured."""
    one, other = (sum(each[name] for each in directions) for name in (kind, f"{kind}_captured"))
    return abs(one - other) / max(one, other, 1) if directions else None


def _traffic(capture: Path) -> tuple[dict[Direction, Traffic], str | None]:
    try:
        return counts(capture), None
    except (BadCapture, OSError) as error:
        return {}, str(error)


def _both(row: PacketRow, seen: Traffic) -> dict[str, Any]:
    return {
        "from": row.sender,
        "to": row.receiver,
        "source": row.source,
        "destination": row.destination,
        "segments": row.segments,
        "segments_captured": seen.segments,
        "bytes": row.bytes,
        "bytes_captured": seen.payload_bytes,
    }


def counts(path: Path) -> dict[Direction, Traffic]:
    """The traffic of each direction. BadCapture if the file is no capture, or ends inside a frame."""
    size = path.stat().st_size
    if size < FILE_HEADER:
        raise BadCapture(f"{path} is no packet capture: it has {size} bytes")
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        return counted(content)


def counted(content: Content) -> dict[Direction, Traffic]:
    """The same for a capture in memory."""
    order, link = _format(content)
    found: defaultdict[Ends, Traffic] = defaultdict(Traffic)
    for on_wire, frame in _frames(content, order):
        if sent := segment(frame, link, on_wire):
            found[sent.ends].segments += 1
            found[sent.ends].payload_bytes += sent.payload_bytes
    return {_direction(ends): traffic for ends, traffic in found.items()}


def _format(content: Content) -> tuple[str, int]:
    """(byte order, link type)"""
    if len(content) < FILE_HEADER or content[:4] not in BYTE_ORDERS:
        raise BadCapture("no packet capture of pcap's classic format, as tcpdump -w writes it")
    order = BYTE_ORDERS[content[:4]]
    link = struct.unpack_from(f"{order}I", content, 20)[0] & 0xFFFF
    if link not in BEFORE_IP:
        raise BadCapture(f"a capture of link type {link}; known are {', '.join(map(str, BEFORE_IP))}")
    return order, link


def _frames(content: Content, order: str) -> Iterator[tuple[int, bytes]]:
    """(length on the wire, captured bytes) of each frame; the eight bytes before the lengths are its time."""
    header = struct.Struct(f"{order}8xII")
    at, size = FILE_HEADER, len(content)
    while at < size:
        if at + FRAME_HEADER > size:
            raise BadCapture(f"the capture ends inside a frame's header, at byte {at}")
        captured, on_wire = header.unpack_from(content, at)
        at += FRAME_HEADER
        if captured > min(LONGEST_FRAME, size - at):
            raise BadCapture(f"the capture has a frame of {captured} bytes at byte {at} of {size}")
        yield on_wire, content[at : at + captured]
        at += captured


def _direction(ends: Ends) -> Direction:
    source, destination, ports = ends
    source_port, destination_port = struct.unpack(">HH", ports)
    return address_name(source, source_port), address_name(destination, destination_port)


def segment(frame: bytes, link: int, on_wire: int) -> Segment | None:
    """The TCP segment in a captured frame that had `on_wire` bytes; None if it is no TCP over IP, or a later fragment.

    BadCapture if the capture has too few bytes of the frame.
    """
    before = BEFORE_IP[link]
    if link in ETHERTYPE_AT and frame[ETHERTYPE_AT[link] :][:2] not in IP_ETHERTYPES:
        return None
    packet = frame[before:]
    try:
        ip = _ip(packet, on_wire - before)
        return _tcp(packet, ip) if ip else None
    except (IndexError, struct.error) as error:
        raise BadCapture(f"a frame is cut short after {len(frame)} bytes: capture at least 96 of each") from error


def _ip(packet: bytes, on_wire: int) -> _Ip | None:
    version = packet[0] >> 4
    if version == 4:
        return _ipv4(packet, on_wire)
    return _ipv6(packet, on_wire) if version == 6 else None


def _ipv4(packet: bytes, on_wire: int) -> _Ip | None:
    """The field's length is 0 if the packet is too long for it, which only offloading makes."""
    length, fragment, protocol, source, destination = struct.unpack_from(">2xH2xHxB2x4s4s", packet)
    if protocol != TCP or fragment & 0x1FFF:
        return None
    return _Ip(source, destination, (packet[0] & 15) * 4, length or on_wire)


def _ipv6(packet: bytes, on_wire: int) -> _Ip | None:
    length, kind, source, destination = struct.unpack_from(">4xHBx16s16s", packet)
    at = 40
    while kind in OPTIONS:
        kind, at = packet[at], at + 8 * (packet[at + 1] + 1)
    if kind == FRAGMENT:
        if struct.unpack_from(">2xH", packet, at)[0] >> 3:
            return None
        kind, at = packet[at], at + 8
    return _Ip(source, destination, at, 40 + length if length else on_wire) if kind == TCP else None


def _tcp(packet: bytes, ip: _Ip) -> Segment:
    header = (packet[ip.tcp_at + ENOUGH - 1] >> 4) * 4
    payload = ip.length - ip.tcp_at - header
    if header < TCP_LEAST or payload < 0:
        raise BadCapture(f"a TCP header of {header} bytes in a packet of {ip.length}")
    return Segment((ip.source, ip.destination, packet[ip.tcp_at : ip.tcp_at + 4]), payload)
