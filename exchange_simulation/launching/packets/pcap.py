"""Packet captures: TCP segments and payload of each direction of each connection, checked against the counters.

The file has pcap's classic format, as `tcpdump -w` writes it. dpkt decodes its headers and the packets. A captured
frame counts as one segment. The kernel may give a network card, or loopback, several segments in one frame, which its
own counters count separately.
"""

from __future__ import annotations

import io
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from dpkt import Error, NeedData
from dpkt.ethernet import ETH_TYPE_IP, ETH_TYPE_IP6
from dpkt.ip import IP, IP_PROTO_TCP
from dpkt.ip6 import IP6
from dpkt.pcap import MAGIC_TO_PKT_HDR, FileHdr, LEFileHdr, LEPktHdr, PktHdr
from dpkt.tcp import TCP

from exchange_simulation.launching.packets.rows import PacketRow, packet_rows
from transports.sockets import address_name

LONGEST_FRAME = 1 << 18
"""The most captured bytes of a frame: tcpdump's own limit."""


class LinkLayer(NamedTuple):
    """The header before an IP packet: its size, and the offset of its ethertype, None without an ethertype."""

    header_bytes: int
    ethertype_at: int | None


LINK_LAYERS = {
    0: LinkLayer(4, None),
    1: LinkLayer(14, 12),
    101: LinkLayer(0, None),
    113: LinkLayer(16, 14),
    276: LinkLayer(20, 0),
}
"""By pcap's link type: NULL, EN10MB, RAW, LINUX_SLL, LINUX_SLL2."""
IP_ETHERTYPES = {ethertype.to_bytes(2, "big") for ethertype in (ETH_TYPE_IP, ETH_TYPE_IP6)}

Direction = tuple[str, str]
"""Source and destination, as 127.0.0.1:4711 or [::1]:4711."""
Ends = tuple[bytes, int, bytes, int]
"""Source address and port, destination address and port; addresses as on the wire."""


@dataclass
class Traffic:
    """The segments that one end of a connection sent to the other."""

    segments: int = 0
    payload_bytes: int = 0


class BadCapture(ValueError):
    """The capture is damaged, or of an unknown format. The message says what is wrong."""


class Segment(NamedTuple):
    """A TCP segment of a capture."""

    ends: Ends
    payload_bytes: int


def compare_with_counters(
    record: Mapping[str, Any], capture: Path, tcpdump_counts: Mapping[str, int]
) -> dict[str, Any]:
    """Return run.json's `capture`: both counts of each captured direction, and tcpdump's own counts of packets.

    `off_by` is the difference as a share, 0 to 1, of the larger count. A capture includes the handshakes and goodbyes
    of connections, which a run's counters lack. So the difference is larger in a short run.
    """
    traffic_by_direction, problem = _traffic_or_problem(capture)
    directions = []
    for row in packet_rows(record):
        captured = traffic_by_direction.get((row.source, row.destination))
        if captured is not None:
            directions.append(_both_counts(row, captured))
    off_by = {kind: _off_by(directions, kind) for kind in ("segments", "bytes")}
    return {"file": capture.name, **tcpdump_counts, "problem": problem, "off_by": off_by, "directions": directions}


def _off_by(directions: Sequence[Mapping[str, Any]], kind: str) -> float | None:
    """Return the difference over all directions together; None if nothing was captured."""
    if not directions:
        return None
    counted_by_kernel = sum(direction[kind] for direction in directions)
    captured = sum(direction[f"{kind}_captured"] for direction in directions)
    return abs(counted_by_kernel - captured) / max(counted_by_kernel, captured, 1)


def _traffic_or_problem(capture: Path) -> tuple[dict[Direction, Traffic], str | None]:
    """Return the traffic of each direction, and None; if the capture cannot be read, no traffic, and the reason."""
    try:
        return counts(capture), None
    except (BadCapture, OSError) as error:
        return {}, str(error)


def _both_counts(row: PacketRow, captured: Traffic) -> dict[str, Any]:
    """Return an entry of run.json's `directions`: the kernel's counts and the captured ones."""
    return {
        "from": row.sender,
        "to": row.receiver,
        "source": row.source,
        "destination": row.destination,
        "segments": row.segments,
        "segments_captured": captured.segments,
        "bytes": row.bytes,
        "bytes_captured": captured.payload_bytes,
    }


def counts(path: Path) -> dict[Direction, Traffic]:
    """Return the traffic of each direction. BadCapture if the file is no capture, or ends inside a frame."""
    size = path.stat().st_size
    if size < FileHdr.__hdr_len__:
        raise BadCapture(f"{path} is no packet capture: it has {size} bytes")
    with path.open("rb") as file:
        return _counts(file)


def counts_of_bytes(content: bytes) -> dict[Direction, Traffic]:
    """Return the traffic of each direction of a capture in memory. BadCapture as from `counts`."""
    return _counts(io.BytesIO(content))


def _counts(file: BinaryIO) -> dict[Direction, Traffic]:
    frame_header, link_type = _format(file)
    traffic: defaultdict[Ends, Traffic] = defaultdict(Traffic)
    for frame, bytes_on_wire in _frames(file, frame_header):
        captured = segment(frame, link_type, bytes_on_wire)
        if captured is not None:
            traffic[captured.ends].segments += 1
            traffic[captured.ends].payload_bytes += captured.payload_bytes
    return {_direction(ends): sums for ends, sums in traffic.items()}


def _format(file: BinaryIO) -> tuple[type[PktHdr], int]:
    """Read the file's header. Returns the class of the frames' headers, by their byte order, and the link type."""
    content = file.read(FileHdr.__hdr_len__)
    frame_header = MAGIC_TO_PKT_HDR.get(int.from_bytes(content[:4], "big"))
    if len(content) < FileHdr.__hdr_len__ or frame_header not in (PktHdr, LEPktHdr):
        raise BadCapture("no packet capture of pcap's classic format, as tcpdump -w writes it")
    file_header = LEFileHdr(content) if frame_header is LEPktHdr else FileHdr(content)
    link_type = file_header.linktype & 0xFFFF
    if link_type not in LINK_LAYERS:
        raise BadCapture(f"a capture of link type {link_type}; known are {', '.join(map(str, LINK_LAYERS))}")
    return frame_header, link_type


def _frames(file: BinaryIO, frame_header: type[PktHdr]) -> Iterator[tuple[bytes, int]]:
    """Yield the captured bytes of each frame, and its length on the wire, which dpkt's own Reader does not return."""
    while True:
        content = file.read(frame_header.__hdr_len__)
        if not content:
            return
        if len(content) < frame_header.__hdr_len__:
            raise BadCapture(f"the capture ends inside a frame's header, at byte {file.tell()}")
        header = frame_header(content)
        position = file.tell()
        frame_words = f"the capture has a frame of {header.caplen} bytes at byte {position}"
        if header.caplen > LONGEST_FRAME:
            raise BadCapture(f"{frame_words}; most are {LONGEST_FRAME}")
        frame = file.read(header.caplen)
        if len(frame) < header.caplen:
            raise BadCapture(f"{frame_words} of {file.tell()}")
        yield frame, header.len


def _direction(ends: Ends) -> Direction:
    source, source_port, destination, destination_port = ends
    return address_name(source, source_port), address_name(destination, destination_port)


def segment(frame: bytes, link_type: int, bytes_on_wire: int) -> Segment | None:
    """Return the TCP segment in a captured frame; None if it has no TCP segment, or a fragment that is not the first.

    BadCapture if the capture has too few bytes of the frame, or the frame has impossible lengths.
    """
    link = LINK_LAYERS[link_type]
    if link.ethertype_at is not None and frame[link.ethertype_at :][:2] not in IP_ETHERTYPES:
        return None
    packet = frame[link.header_bytes :]
    version = packet[0] >> 4 if packet else None
    if version not in (None, 4, 6):
        return None
    try:
        if version == 6:
            ip = _ip6(packet)
            is_tcp = _is_tcp_over_ip6(ip)
        else:
            ip = IP(packet)
            is_tcp = ip.p == IP_PROTO_TCP and ip.offset == 0
        if not is_tcp:
            return None
        return _segment(ip, ip.data, bytes_on_wire - link.header_bytes)
    except NeedData as error:
        raise BadCapture(f"a frame is cut short after {len(frame)} bytes: capture at least 96 of each") from error
    except Error as error:
        raise BadCapture(f"a frame of {len(frame)} bytes holds a damaged packet: {error}") from error


def _ip6(packet: bytes) -> IP6:
    try:
        return IP6(packet)
    except AttributeError as error:  # dpkt 1.9.8 takes the last header for that of the fragment
        raise BadCapture("a fragment of an IPv6 packet has options, which dpkt cannot read") from error


def _is_tcp_over_ip6(ip: IP6) -> bool:
    """Return True if TCP follows the headers, and the packet is no fragment or the first one."""
    fragments = [header for header in ip.all_extension_headers if hasattr(header, "frag_off")]
    protocol = getattr(ip, "p", None)  # an encrypted packet has none
    return protocol == IP_PROTO_TCP and not any(header.frag_off for header in fragments)


def _segment(ip: IP | IP6, tcp: TCP | bytes, bytes_on_wire: int) -> Segment:
    """Return the segment in an IP packet. The length field is 0 if offloading made the packet too long for it."""
    if not isinstance(tcp, TCP):
        tcp = TCP(tcp)  # dpkt could not decode these bytes, and hid the error; this raises the error
    if isinstance(ip, IP6):
        headers_bytes = ip.__hdr_len__ + sum(header.length for header in ip.all_extension_headers)
        packet_bytes = ip.__hdr_len__ + ip.plen if ip.plen else bytes_on_wire
    else:
        headers_bytes = ip.hl * 4
        packet_bytes = ip.len or bytes_on_wire
    payload_bytes = packet_bytes - headers_bytes - tcp.off * 4
    if payload_bytes < 0:
        raise BadCapture(f"a TCP header of {tcp.off * 4} bytes in a packet of {packet_bytes}")
    return Segment((ip.src, tcp.sport, ip.dst, tcp.dport), payload_bytes)
