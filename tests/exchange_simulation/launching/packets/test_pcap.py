"""Packet captures, which the tests make byte by byte."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exchange_simulation.launching.packets.pcap import BadCapture, Traffic, counts, counts_of_bytes

LINKS = {
    0: (b"\x02\x00\x00\x00", b"\x1e\x00\x00\x00"),
    1: (bytes(12) + b"\x08\x00", bytes(12) + b"\x86\xdd"),
    101: (b"", b""),
    113: (bytes(14) + b"\x08\x00", bytes(14) + b"\x86\xdd"),
    276: (b"\x08\x00" + bytes(18), b"\x86\xdd" + bytes(18)),
}
"""By link type, what stands before IPv4 and before IPv6."""
ONE = "127.0.0.1:4711"
OTHER = "127.0.0.1:80"
MAGIC = {1000: 0xA1B2C3D4, 1: 0xA1B23C4D}


def tcp(options: int = 12) -> bytes:
    """From port 4711 to port 80."""
    return struct.pack(">HHIIBB6x", 4711, 80, 0, 0, (20 + options) // 4 << 4, 16) + bytes(max(0, options))


def ipv4(after: bytes, payload: int, options: int = 0, **fields: int) -> bytes:
    length = fields.get("length", 20 + options + len(after) + payload)
    kind = struct.pack(">HHHBB2x", length, 7, fields.get("fragment", 0), 64, fields.get("protocol", 6))
    return bytes([0x45 + options // 4, 0]) + kind + b"\x7f\x00\x00\x01" * 2 + bytes(options) + after


def ipv6(after: bytes, payload: int, kind: int = 6, length: int | None = None) -> bytes:
    address = bytes(15) + b"\x01"
    size = len(after) + payload if length is None else length
    return struct.pack(">IHBB", 6 << 28, size, kind, 64) + address * 2 + after


def pcap(*frames: bytes, link: int = 1, order: str = "<", unit_ns: int = 1000, on_wire: int = 1500) -> bytes:
    """Frames at 1.5 s, 2.5 s, ... as far as they were kept."""
    head = struct.pack(f"{order}IHHiIII", MAGIC[unit_ns], 2, 4, 0, 0, 96, link)
    half = 500_000_000 // unit_ns
    heads = [struct.pack(f"{order}IIII", 1 + at, half, len(frame), on_wire) for at, frame in enumerate(frames)]
    return head + b"".join(a + b for a, b in zip(heads, frames, strict=True))


def ethernet(packet: bytes) -> bytes:
    return LINKS[1][packet[0] >> 4 == 6] + packet


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("unit_ns", [1000, 1])
@pytest.mark.parametrize("link", LINKS)
def test_every_format_and_link_type_is_read(order, unit_ns, link):
    before4, before6 = LINKS[link]
    frames = [before4 + ipv4(tcp(), 100), before6 + ipv6(tcp(), 30), before4 + ipv4(tcp(), 0)]
    assert counts_of_bytes(pcap(*frames, link=link, order=order, unit_ns=unit_ns)) == {
        (ONE, OTHER): Traffic(2, 100),
        ("[::1]:4711", "[::1]:80"): Traffic(1, 30),
    }


def test_each_direction_has_its_own_counts():
    back = struct.pack(">HH", 80, 4711) + tcp()[4:]
    traffic = counts_of_bytes(pcap(ethernet(ipv4(tcp(), 10)), ethernet(ipv4(back, 20))))
    assert traffic.keys() == {(ONE, OTHER), (OTHER, ONE)}
    assert traffic[ONE, OTHER].payload_bytes == 10
    assert traffic[OTHER, ONE].payload_bytes == 20


def test_options_of_ip_and_tcp_are_no_payload_and_neither_is_padding():
    assert counts_of_bytes(pcap(ethernet(ipv4(tcp(40), 7, options=8)) + bytes(50)))[ONE, OTHER].payload_bytes == 7


@pytest.mark.parametrize("kind", [0, 43, 60])
def test_headers_between_ipv6_and_tcp_are_passed(kind):
    between = bytes([60, 0]) + bytes(6) + bytes([6, 1]) + bytes(14)
    assert counts_of_bytes(pcap(ethernet(ipv6(between + tcp(), 9, kind))))["[::1]:4711", "[::1]:80"].payload_bytes == 9


def test_a_packet_too_long_for_its_length_field_has_the_length_of_its_frame():
    traffic = counts_of_bytes(pcap(ethernet(ipv4(tcp(), 0, length=0)), on_wire=100_000))
    assert traffic[ONE, OTHER].payload_bytes == 100_000 - 14 - 52


@pytest.mark.parametrize(
    "frame",
    [
        b"",
        bytes(12) + b"\x08\x06" + bytes(28),
        ethernet(ipv4(tcp(), 0, protocol=17)),
        ethernet(ipv4(tcp(), 0, fragment=100)),
        ethernet(ipv6(b"\x06\x00\x01\x00" + bytes(4) + tcp(), 0, 44)),
        ethernet(ipv6(bytes(8), 0, 17)),
        ethernet(ipv6(bytes(40), 0, 50)),
        bytes(12) + b"\x08\x00" + bytes(40),
    ],
)
def test_packets_without_tcp_and_later_fragments_are_ignored(frame):
    assert counts_of_bytes(pcap(frame)) == {}


def test_the_first_fragment_is_a_segment():
    fragment = b"\x06\x00\x00\x01" + bytes(4) + tcp()
    assert counts_of_bytes(pcap(ethernet(ipv6(fragment, 9, 44))))["[::1]:4711", "[::1]:80"].payload_bytes == 9


@pytest.mark.parametrize(
    "frame",
    [
        ethernet(ipv4(tcp(), 100))[:46],
        ethernet(ipv4(tcp(), 100))[:20],
        ethernet(ipv6(tcp(), 100))[:50],
        bytes(12) + b"\x08\x00",
    ],
)
def test_a_frame_cut_too_short_is_an_error_with_advice(frame):
    with pytest.raises(BadCapture, match="at least 96"):
        counts_of_bytes(pcap(frame))


@pytest.mark.parametrize("frame", [ipv4(tcp(-20), 0), ipv4(tcp(), 0, length=40)])
def test_headers_longer_than_their_packet_are_an_error(frame):
    with pytest.raises(BadCapture):
        counts_of_bytes(pcap(ethernet(frame)))


def test_a_fragment_with_options_is_an_error_that_says_so():
    fragment = b"\x3c\x00\x00\x01" + bytes(4) + bytes([6, 0]) + bytes(6) + tcp()
    with pytest.raises(BadCapture, match="a fragment of an IPv6 packet has options"):
        counts_of_bytes(pcap(ethernet(ipv6(fragment, 9, 44))))


def test_a_capture_that_ends_inside_a_frame_is_an_error():
    whole = pcap(ethernet(ipv4(tcp(), 1)))
    for length in range(25, len(whole)):
        with pytest.raises(BadCapture):
            counts_of_bytes(whole[:length])
    assert counts_of_bytes(whole[:24]) == {}


def test_what_is_no_capture_is_an_error(tmp_path: Path):
    for content in (b"", b"pcap", b"\n\r\r\n" + bytes(100), bytes(24)):
        (tmp_path / "it.pcap").write_bytes(content)
        with pytest.raises(BadCapture, match="no packet capture"):
            counts(tmp_path / "it.pcap")


def test_an_unknown_link_type_is_named():
    with pytest.raises(BadCapture, match="link type 105"):
        counts_of_bytes(pcap(link=105))


def test_a_file_is_read_as_its_content_is(tmp_path: Path):
    whole = pcap(ethernet(ipv4(tcp(), 5)), ethernet(ipv6(tcp(), 6)))
    (tmp_path / "it.pcap").write_bytes(whole)
    assert counts(tmp_path / "it.pcap") == counts_of_bytes(whole)


FRAMES = st.lists(st.one_of(st.binary(max_size=120), st.just(ethernet(ipv4(tcp(), 9)))), max_size=4)


@given(FRAMES, st.sampled_from(sorted(LINKS)), st.data())
def test_garbage_is_counted_or_an_error_of_ours(frames, link, data):
    content = bytearray(pcap(*frames, ethernet(ipv6(bytes(8) + tcp(), 9, 0)), link=link))
    for _ in range(data.draw(st.integers(0, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    try:
        found = counts_of_bytes(bytes(content[: data.draw(st.integers(0, len(content)))]))
    except BadCapture:
        return
    assert all(traffic.segments > 0 and traffic.payload_bytes >= 0 for traffic in found.values())


@given(st.binary(max_size=300))
def test_any_bytes_are_counted_or_an_error_of_ours(content):
    try:
        counts_of_bytes(content)
    except BadCapture:
        return
