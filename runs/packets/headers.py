"""A captured frame's headers: link, IP, TCP. Frames that are not TCP over IP are None, and fragments but the first."""

from __future__ import annotations

import struct
from typing import NamedTuple

BEFORE_IP = {0: 4, 1: 14, 101: 0, 113: 16, 276: 20}
"""Bytes of a frame before its IP header, by link type: NULL, EN10MB, RAW, LINUX_SLL, LINUX_SLL2."""
ETHERTYPE_AT = {1: 12, 113: 14, 276: 0}
IP_ETHERTYPES = {b"\x08\x00", b"\x86\xdd"}
TCP = 6
OPTIONS = {0, 43, 60}
"""Headers between IPv6's and TCP's: hop by hop, routing, destination."""
FRAGMENT = 44
TCP_LEAST = 20  # bytes
ENOUGH = 13  # bytes of a TCP header, up to where it says how long it is

Ends = tuple[bytes, bytes, bytes]
"""The source's address, the destination's, and both ports; as they were on the wire."""


class BadCapture(ValueError):
    """What is wrong with a capture, and where."""


class Segment(NamedTuple):
    """Bytes: on the wire with IP's and TCP's headers, without the link's."""

    ends: Ends
    payload_bytes: int
    wire_bytes: int


class _Ip(NamedTuple):
    """Where TCP begins; an IP packet's length with its headers."""

    source: bytes
    destination: bytes
    tcp_at: int
    length: int


def segment(frame: bytes, link: int, on_wire: int) -> Segment | None:
    """From what a capture kept of a frame that had so many bytes on the wire; BadCapture where that is too little."""
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
    """A length of 0 is a packet too long for the field, which only offloading makes."""
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
    return Segment((ip.source, ip.destination, packet[ip.tcp_at : ip.tcp_at + 4]), payload, ip.length)
