"""TCP_NODELAY as a switch on live sockets, read back from the kernel; and what the kernel counts on them."""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.transports.conftest import carry, joined, until
from transports.base import Address, BadAddress, Pattern
from transports.frames import FrameBatch
from transports.registry import has_broker, known_schemes, listen, transport_of
from transports.sockets import (
    COUNTERS,
    TCP_INFO_BYTES,
    address_name,
    counted_since,
    counters,
    parse_tcp_info,
    read_back,
    set_nodelay,
)

OVER_TCP = sorted(scheme for scheme in known_schemes() if scheme in transport_of(scheme).over_tcp)
LISTENING = [scheme for scheme in OVER_TCP if not has_broker(scheme)]
ORDERS = FrameBatch.of(*[bytes(10)] * 300)


@pytest.mark.parametrize("scheme", LISTENING)
@pytest.mark.parametrize(("option", "nodelay"), [("", True), ("?nodelay=on", True), ("?nodelay=off", False)])
def test_each_end_of_a_connection_has_what_its_address_asks_for(scheme: str, option: str, nodelay: bool) -> None:
    with joined(f"{scheme}://127.0.0.1:0{option}") as ends:
        found = [socket for end in ends for socket in end.sockets()]
        assert [(end["tcp_nodelay"], end["tcp_nodelay_asked"]) for end in found] == [(nodelay, nodelay)] * 2
        assert (found[0]["local"], found[0]["peer"]) == (found[1]["peer"], found[1]["local"])


@pytest.mark.parametrize("client", ["compiled", "pika"])
@pytest.mark.parametrize("nodelay", ["on", "off"])
def test_a_broker_s_client_has_it_whatever_pika_sets(client: str, nodelay: str, broker_place: str) -> None:
    with joined(f"amqp://{broker_place}?client={client}&nodelay={nodelay}") as ends:
        assert [end.sockets()[0]["tcp_nodelay"] for end in ends] == [nodelay == "on"] * 2


@pytest.mark.parametrize("scheme", [*LISTENING, "amqp"])
def test_the_kernel_s_buffers_are_what_the_address_asks_for(scheme: str, broker_place_of: Callable[[str], str]) -> None:
    """Linux doubles what is asked, and says so."""
    place = broker_place_of(scheme) if has_broker(scheme) else "127.0.0.1:0"
    with joined(f"{scheme}://{place}?sndbuf=20000&rcvbuf=30000") as ends:
        found = [socket for end in ends for socket in end.sockets()]
        assert [(each["sndbuf_bytes"], each["rcvbuf_bytes"]) for each in found] == [(40_000, 60_000)] * 2


@pytest.mark.parametrize("scheme", LISTENING)
def test_every_source_of_a_fan_in_has_what_the_listener_asks_for(scheme: str) -> None:
    with joined(f"{scheme}://127.0.0.1:0?nodelay=off", pattern=Pattern.FAN_IN) as (listener, _):
        assert [socket["tcp_nodelay"] for socket in listener.sockets()] == [False]


def test_zeromq_has_it_on_a_connection_that_was_made_again() -> None:
    with joined("zeromq://127.0.0.1:0?nodelay=off", pattern=Pattern.FAN_IN) as (listener, connector):
        (first,) = connector.sockets()
        cut(connector._inbound_doorman.connections[0])  # type: ignore[attr-defined]

        def made_again() -> bool:
            listener.sockets()  # admits who knocks
            return [end["local"] for end in connector.sockets()] not in ([], [first["local"]])

        until(made_again)
        assert [end["tcp_nodelay"] for end in connector.sockets()] == [False]


def cut(descriptor: int) -> None:
    with socket.socket(fileno=os.dup(descriptor)) as sock:
        sock.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize("scheme", sorted(set(known_schemes()) - set(OVER_TCP)))
def test_what_has_no_tcp_socket_refuses_the_option(scheme: str) -> None:
    with pytest.raises(BadAddress, match=r"'nodelay' is no option"):
        listen(f"{scheme}://place?nodelay=off", "a-run")


@pytest.mark.parametrize("value", ["", "yes", "0", "OFF"])
def test_another_value_is_refused_with_what_is_allowed(value: str) -> None:
    with pytest.raises(BadAddress, match="it takes on or off"):
        Address.parse(f"tcp://127.0.0.1:0?nodelay={value}", "a-run")


@pytest.mark.parametrize("scheme", LISTENING)
def test_both_ends_count_the_same_bytes_and_segments(scheme: str) -> None:
    with joined(f"{scheme}://127.0.0.1:0") as (listener, connector):
        before = listener.sockets(), connector.sockets()
        list(carry(connector, listener, ORDERS))
        until(lambda: connector.sockets()[0]["segments_out"] == listener.sockets()[0]["segments_in"], listener)
        (here,), (there,) = (
            counted_since(end.sockets(), was) for end, was in zip((listener, connector), before, strict=True)
        )
        assert there["bytes_out"] == here["bytes_in"] >= 300 * 10
        assert 0 < here["segments_in"] == there["segments_out"] <= 2 * 300
        assert here["retransmits"] == there["retransmits"] == 0


def test_a_descriptor_that_is_gone_or_no_socket_is_left_alone() -> None:
    reading, writing = os.pipe()
    for descriptor in (-1, reading, 1 << 20):
        set_nodelay(descriptor, False)
    assert read_back([-1, reading, 1 << 20], True) == []
    os.close(reading)
    os.close(writing)


def test_counters_are_where_linux_keeps_them() -> None:
    info = bytearray(TCP_INFO_BYTES)
    for offset, kind, value in ((100, "I", 1), (128, "Q", 2), (136, "I", 3), (140, "I", 4), (200, "Q", 5)):
        struct.pack_into(f"={kind}", info, offset, value)
    expected = {"retransmits": 1, "bytes_in": 2, "segments_out": 3, "segments_in": 4, "bytes_out": 5}
    assert parse_tcp_info(bytes(info)) == expected
    assert set(expected) == set(COUNTERS)


@given(st.binary(max_size=2 * TCP_INFO_BYTES))
def test_an_older_kernel_s_shorter_struct_has_fewer_counters(info: bytes) -> None:
    assert set(parse_tcp_info(info)) <= set(COUNTERS)
    assert ("bytes_out" in parse_tcp_info(info)) == (len(info) >= 208)


@pytest.mark.parametrize(
    ("address", "written"),
    [("127.0.0.1", "127.0.0.1:80"), ("::1", "[::1]:80"), ("::ffff:10.0.0.1", "10.0.0.1:80")],
)
def test_an_address_in_network_order_is_written_as_a_socket_s_is(address: str, written: str) -> None:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    assert address_name(socket.inet_pton(family, address), 80) == written


def test_what_is_no_tcp_socket_has_no_counters() -> None:
    left, right = socket.socketpair()
    with left, right:
        assert counters(left) == {}


@pytest.mark.skipif(not hasattr(socket, "TCP_QUICKACK"), reason="this system has no TCP_QUICKACK")
def test_who_acknowledges_at_once_does_not_let_nagle_wait() -> None:
    """The second of two small messages waits for the acknowledgement of the first, unless that comes at once."""
    assert late_acknowledgements("off") > late_acknowledgements("on") == 0


def late_acknowledgements(quickack: str, tries: int = 40) -> int:
    """Send pairs of messages; count how often the second had not come when the first was read."""
    held_back = 0
    with joined(f"tcp://127.0.0.1:0?nodelay=off&quickack={quickack}") as (listener, connector):
        for _ in range(tries):
            got = FrameBatch()
            connector.send(FrameBatch.of(b"first", b"second"), 0)
            until(lambda got=got: listener.receive(got) > 0, listener)
            listener.receive(got)
            held_back += got.count < 2
            until(lambda got=got: listener.receive(got) + got.count > 1, listener)
    return held_back
