"""TCP_NODELAY on open sockets, read back from the kernel, and the kernel's counters of these sockets."""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.transports.conftest import carry, joined, serve_links_until
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
WITH_BUFFER_SIZES = [scheme for scheme in LISTENING if "sndbuf" in transport_of(scheme).options]
ORDERS = FrameBatch.of(*[bytes(10)] * 300)


@pytest.mark.parametrize("scheme", LISTENING)
@pytest.mark.parametrize(("option", "nodelay"), [("", True), ("?nodelay=on", True), ("?nodelay=off", False)])
def test_both_ends_of_a_connection_have_the_requested_nodelay(scheme: str, option: str, nodelay: bool) -> None:
    with joined(f"{scheme}://127.0.0.1:0{option}") as (listener, connector):
        [listener_end] = listener.sockets()
        [connector_end] = connector.sockets()
        for end in (listener_end, connector_end):
            assert end["tcp_nodelay"] is nodelay
            assert end["tcp_nodelay_asked"] is nodelay
        assert listener_end["local"] == connector_end["peer"]
        assert listener_end["peer"] == connector_end["local"]


@pytest.mark.parametrize("client", ["compiled", "pika"])
@pytest.mark.parametrize("nodelay", ["on", "off"])
def test_a_broker_s_client_has_the_requested_nodelay_in_spite_of_pika(
    client: str, nodelay: str, broker_place: str
) -> None:
    with joined(f"amqp://{broker_place}?client={client}&nodelay={nodelay}") as ends:
        for link in ends:
            [end] = link.sockets()
            assert end["tcp_nodelay"] is (nodelay == "on")


@pytest.mark.parametrize("scheme", [*WITH_BUFFER_SIZES, "amqp"])
def test_the_kernel_s_buffers_have_the_requested_sizes(scheme: str, broker_place_of: Callable[[str], str]) -> None:
    """Linux doubles a requested size, and returns the doubled size."""
    place = broker_place_of(scheme) if has_broker(scheme) else "127.0.0.1:0"
    with joined(f"{scheme}://{place}?sndbuf=20000&rcvbuf=30000") as ends:
        for link in ends:
            [end] = link.sockets()
            assert end["sndbuf_bytes"] == 40_000
            assert end["rcvbuf_bytes"] == 60_000


@pytest.mark.parametrize("scheme", LISTENING)
def test_the_listener_of_a_fan_in_sets_nodelay_on_every_connection(scheme: str) -> None:
    with joined(f"{scheme}://127.0.0.1:0?nodelay=off", pattern=Pattern.FAN_IN) as (listener, _):
        [end] = listener.sockets()
        assert end["tcp_nodelay"] is False


def test_a_reconnected_zeromq_link_has_the_requested_nodelay() -> None:
    with joined("zeromq://127.0.0.1:0?nodelay=off", pattern=Pattern.FAN_IN) as (listener, connector):
        [first] = connector.sockets()
        shut_down(connector._inbound_doorman.connections[0])  # type: ignore[attr-defined]

        def has_reconnected() -> bool:
            listener.sockets()  # admits the new connection
            local_ends = [end["local"] for end in connector.sockets()]
            return local_ends not in ([], [first["local"]])

        serve_links_until(has_reconnected)
        [second] = connector.sockets()
        assert second["tcp_nodelay"] is False


def shut_down(descriptor: int) -> None:
    """Break this connection."""
    with socket.socket(fileno=os.dup(descriptor)) as sock:
        sock.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize("scheme", sorted(set(known_schemes()) - set(OVER_TCP)))
def test_a_transport_without_tcp_sockets_refuses_nodelay(scheme: str) -> None:
    with pytest.raises(BadAddress, match=r"'nodelay' is no option"):
        listen(f"{scheme}://place?nodelay=off", "a-run")


@pytest.mark.parametrize("value", ["", "yes", "0", "OFF"])
def test_a_wrong_value_of_nodelay_is_refused_with_the_allowed_values(value: str) -> None:
    with pytest.raises(BadAddress, match="it takes on or off"):
        Address.parse(f"tcp://127.0.0.1:0?nodelay={value}", "a-run")


@pytest.mark.parametrize("scheme", LISTENING)
def test_both_ends_count_the_same_bytes_and_segments(scheme: str) -> None:
    with joined(f"{scheme}://127.0.0.1:0") as (listener, connector):
        listener_before = listener.sockets()
        connector_before = connector.sockets()
        list(carry(connector, listener, ORDERS))
        serve_links_until(
            lambda: connector.sockets()[0]["segments_out"] == listener.sockets()[0]["segments_in"], listener
        )
        [listener_counts] = counted_since(listener.sockets(), listener_before)
        [connector_counts] = counted_since(connector.sockets(), connector_before)
        assert connector_counts["bytes_out"] == listener_counts["bytes_in"]
        assert connector_counts["bytes_out"] >= 300 * 10
        assert connector_counts["segments_out"] == listener_counts["segments_in"]
        assert 0 < connector_counts["segments_out"] <= 2 * 300
        assert connector_counts["retransmits"] == 0
        assert listener_counts["retransmits"] == 0


def test_descriptors_that_are_no_sockets_are_ignored() -> None:
    reading, writing = os.pipe()
    for descriptor in (-1, reading, 1 << 20):
        set_nodelay(descriptor, False)
    assert read_back([-1, reading, 1 << 20], True) == []
    os.close(reading)
    os.close(writing)


def test_counters_are_read_from_their_offsets_in_tcp_info() -> None:
    info = bytearray(TCP_INFO_BYTES)
    struct.pack_into("=I", info, 100, 1)
    struct.pack_into("=Q", info, 128, 2)
    struct.pack_into("=I", info, 136, 3)
    struct.pack_into("=I", info, 140, 4)
    struct.pack_into("=Q", info, 200, 5)
    expected = {"retransmits": 1, "bytes_in": 2, "segments_out": 3, "segments_in": 4, "bytes_out": 5}
    assert parse_tcp_info(bytes(info)) == expected
    assert set(expected) == set(COUNTERS)


@given(st.binary(max_size=2 * TCP_INFO_BYTES))
def test_an_older_kernel_s_shorter_struct_has_fewer_counters(info: bytes) -> None:
    assert set(parse_tcp_info(info)) <= set(COUNTERS)
    assert ("bytes_out" in parse_tcp_info(info)) == (len(info) >= 208)


@pytest.mark.parametrize(
    ("address", "expected"),
    [("127.0.0.1", "127.0.0.1:80"), ("::1", "[::1]:80"), ("::ffff:10.0.0.1", "10.0.0.1:80")],
)
def test_an_address_in_network_order_becomes_host_and_port(address: str, expected: str) -> None:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    assert address_name(socket.inet_pton(family, address), 80) == expected


def test_a_socket_without_tcp_has_no_counters() -> None:
    left, right = socket.socketpair()
    with left, right:
        assert counters(left) == {}


@pytest.mark.skipif(not hasattr(socket, "TCP_QUICKACK"), reason="this system has no TCP_QUICKACK")
def test_immediate_acknowledgements_avoid_the_wait_of_nagle_s_algorithm() -> None:
    """With Nagle's algorithm the second of two small messages waits until the first is acknowledged."""
    assert delayed_second_messages("on") == 0
    assert delayed_second_messages("off") > 0


def delayed_second_messages(quickack: str, tries: int = 40) -> int:
    """Send pairs of messages; count how often the second had not come when the first was received."""
    delayed = 0
    with joined(f"tcp://127.0.0.1:0?nodelay=off&quickack={quickack}") as (listener, connector):
        for _ in range(tries):
            batch = FrameBatch()
            connector.send(FrameBatch.of(b"first", b"second"), 0)
            serve_links_until(lambda batch=batch: listener.receive(batch) > 0, listener)
            listener.receive(batch)
            if batch.count < 2:
                delayed += 1
            serve_links_until(lambda batch=batch: listener.receive(batch) + batch.count > 1, listener)
    return delayed
