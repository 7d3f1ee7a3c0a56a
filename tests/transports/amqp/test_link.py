"""A link over a real broker: promises beyond the contract, and failures."""

from __future__ import annotations

import fcntl
import os
import socket
import sys
import termios
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pika.exceptions import ChannelClosedByBroker

from tests.transports.conftest import TOKEN, carry, deadline_ns, joined, serve_links_until
from transports.amqp.address import (
    CONFIRM_WINDOW,
    HEARTBEAT_S,
    PASSWORD,
    PASSWORD_FILE,
    PREFETCH,
    BrokerAddress,
    password,
)
from transports.amqp.broker import RabbitMqProbe
from transports.amqp.session import explained
from transports.base import Address, BadAddress, CannotListen, Link, PeerGone, TransportError, mask
from transports.frames import FrameBatch
from transports.registry import connect, listen, transport_of

CLIENTS = ("compiled", "pika")
GREETING = b"hello"
NUMBERED = [number.to_bytes(4, "little") for number in range(1000)]
"""More messages than a link acknowledges together."""


@pytest.fixture
def at_broker(broker_place: str) -> str:
    return f"amqp://{broker_place}"


def abandon(link: object) -> None:
    """Break a connection as a kill does: close the socket without telling the broker."""
    descriptor = link._loop.descriptor  # type: ignore[attr-defined]
    sock = socket.socket(fileno=os.dup(descriptor))
    sock.shutdown(socket.SHUT_RDWR)
    sock.close()


def listen_once_free(url: str) -> Link:
    """Consume the queue of a killed consumer, once the broker has noticed that the queue is free."""
    until_ns = deadline_ns()
    while True:
        try:
            return listen(url, TOKEN)
        except CannotListen:
            assert time.monotonic_ns() < until_ns, "the broker did not notice that the consumer is gone"


@pytest.mark.parametrize("delivery", ["confirmed", "durable"])
@pytest.mark.parametrize("client", CLIENTS)
def test_no_confirmed_message_is_lost_when_its_consumer_is_killed(client: str, delivery: str, at_broker: str) -> None:
    url = f"{at_broker}?client={client}&delivery={delivery}"
    with joined(url) as (listener, connector):
        orders = FrameBatch.of(*NUMBERED)
        sent = 0
        while sent < len(NUMBERED) or not connector.drain(deadline_ns(10)):
            sent = connector.send(orders, sent)
        received = FrameBatch(500)
        serve_links_until(lambda: listener.receive(received) > 0, listener)
        abandon(listener)  # its messages are received and not yet settled
        successor = listen_once_free(url)
        redelivered = FrameBatch(10_000)
        serve_links_until(
            lambda: successor.receive(redelivered) >= 0 and {*received, *redelivered} >= set(NUMBERED), successor
        )
        numbered = [frame for frame in redelivered if frame != GREETING]  # the greeting may be unsettled, too
        assert numbered == NUMBERED[-len(numbered) :], "redelivered messages are not in order"
        assert successor.facts()["redelivered"] > 0
        successor.close()


@pytest.mark.parametrize("delivery", ["acked", "confirmed"])
def test_settled_messages_are_not_redelivered(delivery: str, at_broker: str) -> None:
    url = f"{at_broker}?delivery={delivery}"
    with joined(url) as (listener, connector):
        carry(connector, listener, FrameBatch.of(*NUMBERED))
        listener.close()
        assert listen_and_take(url) == []


def listen_and_take(url: str) -> list[bytes]:
    """Return the messages that are left in the queue."""
    consumer = listen(url, TOKEN)
    batch = FrameBatch(10_000)
    serve_links_until(lambda: consumer.receive(batch) == 0, consumer)
    consumer.close()
    return list(batch)


def test_a_publisher_with_a_full_window_goes_on_after_confirms(at_broker: str) -> None:
    orders = FrameBatch.of(*NUMBERED * 5)
    with joined(f"{at_broker}?delivery=confirmed") as (listener, connector):
        sent = connector.send(orders, 0)
        assert sent < orders.count, "the window does not limit the unconfirmed messages"
        batch = FrameBatch(1 << 15)

        def have_all() -> bool:
            nonlocal sent
            sent = connector.send(orders, sent)
            listener.receive(batch)
            return batch.count == orders.count

        serve_links_until(have_all, listener, connector)
        assert list(batch) == NUMBERED * 5
        assert connector.drain(deadline_ns(10))
        assert connector.facts()["confirmed"] == connector.facts()["published"]


def test_two_publishers_that_wait_for_confirms_do_not_deadlock(at_broker: str) -> None:
    """Confirms come after deliveries on the same connection: a link that waits for confirms keeps the deliveries."""
    many = FrameBatch.of(*NUMBERED * 9)
    assert CONFIRM_WINDOW < PREFETCH < many.count, "a link could send or receive all messages at once"
    with joined(f"{at_broker}?delivery=confirmed") as ends:
        sent = [0, 0]

        def both_sent() -> bool:
            for side, link in enumerate(ends):
                sent[side] = link.send(many, sent[side])
                link.wait(deadline_ns(0.001), readable=False, writable=True)
            return sent == [many.count, many.count]

        serve_links_until(both_sent)
        for link in ends:
            batch = FrameBatch(1 << 15)
            serve_links_until(
                lambda link=link, batch=batch: link.receive(batch) >= 0 and batch.count == many.count, link
            )
            assert list(batch) == NUMBERED * 9


@pytest.mark.parametrize("topology", ["duplex", "simplex"])
@pytest.mark.parametrize("client", CLIENTS)
def test_a_wait_for_room_does_not_sleep_after_its_own_bytes_have_made_the_room(
    at_broker: str, client: str, topology: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Large messages stood still until that sleep was over, since it had nothing to wait for.

    Only the compiled client with one connection had that fault.
    """
    monkeypatch.setattr("transports.amqp.link.MOST_UNSENT_BYTES", 1000)
    monkeypatch.setattr("transports.waiting.LONGEST_SLEEP_NS", 2**62)
    large_messages = FrameBatch.of(*[bytes(1 << 16)] * 2)
    until_ns = deadline_ns()
    with joined(f"{at_broker}?client={client}&topology={topology}") as (_, connector):
        while connector.send(large_messages, 0):  # ends once more bytes are unsent than one link may have
            assert time.monotonic_ns() < until_ns, "the broker takes everything at once"
        while _bytes_on_the_way(connector):  # once there are none, the socket takes all unsent bytes at once
            assert time.monotonic_ns() < until_ns, "the broker did not read"
        before_a_heartbeat_ns = deadline_ns(10)
        connector.wait(before_a_heartbeat_ns, readable=False, writable=True)
        assert time.monotonic_ns() < before_a_heartbeat_ns, "the link slept, and had room"
        assert connector.send(large_messages, 0) > 0


@pytest.mark.parametrize("client", CLIENTS)
def test_a_link_of_two_connections_closes_where_no_closed_descriptor_can_be_watched(
    at_broker: str, client: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ppoll reports a closed descriptor as ready, and select, on systems without ppoll, raises an error."""
    monkeypatch.setattr("transports.waiting._PPOLL", None)
    with joined(f"{at_broker}?client={client}&topology=simplex") as (listener, connector):
        assert list(carry(connector, listener, FrameBatch.of(GREETING))) == [GREETING]


def test_a_loop_serves_what_came_earlier_and_found_no_room(at_broker: str) -> None:
    """A confirm may lie there behind deliveries for which the batch had no room, and nothing more may come."""
    heartbeat = bytes.fromhex("08000000000000ce")
    with joined(at_broker) as (_, connector):
        loop = connector._loop  # type: ignore[attr-defined]
        loop.stream.incoming[: len(heartbeat)] = list(heartbeat)
        loop.stream.begin = 0
        loop.stream.end = len(heartbeat)
        loop.serve()
        assert loop.stream.begin == loop.stream.end


def _bytes_on_the_way(link: Link) -> int:
    """The bytes that this end's system holds because the broker's system has not taken them."""
    publishing = getattr(link, "_outbound", link)
    answer = fcntl.ioctl(publishing._loop.descriptor, termios.TIOCOUTQ, bytes(4))
    return int.from_bytes(answer, sys.byteorder)


def test_links_of_two_runs_get_no_messages_of_each_other(at_broker: str) -> None:
    with joined(at_broker) as (listener, connector):
        stranger = connect(at_broker, "another-run", deadline_ns())
        stranger.send(FrameBatch.of(b"an order of another run"), 0)
        assert list(carry(connector, listener, FrameBatch.of(*NUMBERED))) == NUMBERED
        assert listener.receive(FrameBatch()) == 0
        stranger.close()


def test_a_second_consumer_is_refused(at_broker: str) -> None:
    with joined(at_broker), pytest.raises(TransportError, match="taken"):
        listen(at_broker, TOKEN)


def test_a_probe_reads_the_depth_of_the_queues_and_deletes_them(at_broker: str) -> None:
    url = f"{at_broker}?delivery=confirmed"
    listener = listen(url, TOKEN)
    connector = connect(url, TOKEN, deadline_ns())
    abandon(listener)
    listener.close()
    sent = connector.send(FrameBatch.of(*NUMBERED), 0)
    while sent < len(NUMBERED) or not connector.drain(deadline_ns(10)):
        sent = connector.send(FrameBatch.of(*NUMBERED), sent)
    probe = RabbitMqProbe(url, TOKEN)
    assert probe.facts["product"] == "RabbitMQ"
    assert probe.depth()["order"] == len(NUMBERED)
    probe.take_down()
    assert probe.depth() == {}
    probe.close()
    connector.close()


def test_a_probe_with_a_closed_channel_deletes_nothing(at_broker: str) -> None:
    """For example: the broker closed the channel, and was frozen before it opened another."""
    probe = RabbitMqProbe(at_broker, TOKEN)
    session = probe._session
    session.channel.close()
    session.wait_for(lambda: session.channel.is_closed or session._problem is not None, deadline_ns())
    session._problem = None
    probe.take_down()
    probe.close()


def test_a_broken_connection_to_the_broker_is_peer_gone(at_broker: str) -> None:
    with joined(at_broker) as (listener, _):
        abandon(listener)
        with pytest.raises(PeerGone, match="went away"):
            serve_links_until(lambda: listener.receive(FrameBatch()) > 0, listener)


def test_a_wrong_password_is_an_error_with_its_variable(at_broker: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PASSWORD, "wrong")
    with pytest.raises(BadAddress, match=r"refuses user 'exchange'.*EXCHANGE_AMQP_PASSWORD"):
        listen(at_broker, TOKEN)


def test_an_unknown_vhost_is_an_error_with_its_name(at_broker: str) -> None:
    with pytest.raises(BadAddress, match="has no vhost 'nowhere'"):
        listen(f"{at_broker.rpartition('/')[0]}/nowhere", TOKEN)


def test_an_address_without_a_broker_is_an_error() -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        with pytest.raises(PeerGone, match=r"cannot be reached: .*refused"):
            listen(f"amqp://guest@127.0.0.1:{holder.getsockname()[1]}/", TOKEN)


@pytest.fixture
def other_protocol() -> Iterator[int]:
    """The port of a server of another protocol: it sends a greeting and disconnects."""

    def serve() -> None:
        peer, _ = listener.accept()
        with peer:
            peer.sendall(b"SSH-2.0-OpenSSH_9.2\r\n" + bytes(100))
            peer.recv(100)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve)
        thread.start()
        yield listener.getsockname()[1]
        thread.join()


@pytest.mark.parametrize("client", CLIENTS)
def test_a_server_of_another_protocol_is_an_error(client: str, other_protocol: int) -> None:
    with pytest.raises(TransportError, match=r"AMQP|went away|closed"):
        listen(f"amqp://guest@127.0.0.1:{other_protocol}/?client={client}", TOKEN)


def address(url: str) -> BrokerAddress:
    parsed = Address.parse(url, TOKEN)
    transport_of(parsed.scheme).check(parsed)
    return BrokerAddress.of(parsed)


@pytest.mark.parametrize(
    ("reply", "error", "message"),
    [
        ("ACCESS_REFUSED - queue 'q' in vhost '/' in exclusive use", CannotListen, "is taken; choose another run"),
        ("ACCESS_REFUSED - access to queue 'q' in vhost '/' refused for user 'u'", TransportError, "refuses: ACCESS"),
    ],
)
def test_only_a_queue_in_exclusive_use_counts_as_taken(reply: str, error: type[TransportError], message: str) -> None:
    refusal = explained(ChannelClosedByBroker(403, reply), address("amqp://u@host"))
    assert type(refusal) is error
    assert message in str(refusal)


def test_an_address_has_parts_and_defaults() -> None:
    shortest = address("amqp://host")
    assert shortest.port == 5672
    assert shortest.user == "guest"
    assert shortest.vhost == "/"
    assert shortest.client == "compiled"
    assert shortest.delivery.name == "lossy"
    full = address("amqps://me@host:99/a%2Fb?client=pika&delivery=durable")
    assert full.port == 99
    assert full.user == "me"
    assert full.vhost == "a/b"
    assert full.client == "pika"
    assert full.tls


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("amqp://me:secret@host/", "takes no password"),
        ("amqp://me:secret@host/?acks=on", r"\*\*\*@host/\?acks=on: 'acks' is no option"),
        ("amqp://me:secret@host/?nodelay=no", r"\*\*\*@host/\?nodelay=no: nodelay is 'no'"),
        ("amqp://host:x/", "port"),
        ("amqp://host:0/", "port"),
        ("amqp:///vhost", "lacks a host"),
        ("amqp://host/?client=fast", "client is 'fast'; it takes compiled, pika"),
        ("amqp://host/?delivery=maybe", "it takes lossy, acked, confirmed, durable"),
    ],
)
def test_the_error_for_a_bad_address_has_no_password(url: str, message: str) -> None:
    with pytest.raises(BadAddress, match=message) as refused:
        address(url)
    assert "secret" not in str(refused.value)


def test_passwords_in_addresses_are_masked() -> None:
    assert mask("amqp://me:secret@host:1/") == "amqp://me:***@host:1/"
    assert mask("amqp://me@host/") == "amqp://me@host/"
    with pytest.raises(BadAddress, match=r"^'tcp://me:\*\*\*@host' lacks host:port"):
        Address.parse("tcp://me:secret@host", "").host_and_port()


def test_a_password_file_that_others_may_read_is_refused(
    tmp_path: Path, at_broker: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = tmp_path / "password"
    secret.write_text(os.environ[PASSWORD] + "\n")
    monkeypatch.delenv(PASSWORD)
    monkeypatch.setenv(PASSWORD_FILE, str(secret))
    secret.chmod(0o644)
    with pytest.raises(BadAddress, match="chmod 600"):
        listen(at_broker, TOKEN)
    secret.chmod(0o600)
    listen(at_broker, TOKEN).close()


@pytest.mark.parametrize(
    ("content", "reason"),
    [(b"\xff", "is no UTF-8 text"), (b"x" * 70_000, "a password has at most 65,536"), (None, "pipe")],
)
def test_a_file_that_is_no_password_is_refused(
    content: bytes | None, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pipe is refused, since reading it could wait for ever."""
    path = tmp_path / "password"
    if content is None:
        os.mkfifo(path)
        reason = "it is no regular file"
    else:
        path.write_bytes(content)
    path.chmod(0o600)
    monkeypatch.delenv(PASSWORD, raising=False)
    monkeypatch.setenv(PASSWORD_FILE, str(path))
    with pytest.raises(BadAddress, match=reason):
        password()


def test_a_link_asks_the_broker_for_heartbeats(at_broker: str) -> None:
    with joined(at_broker) as (listener, _):
        assert listener._loop.connection.params.heartbeat == HEARTBEAT_S  # type: ignore[attr-defined]


def test_drained_messages_survive_the_death_of_their_publisher(at_broker: str) -> None:
    large = FrameBatch.of(*[bytes(50_000)] * 10)
    with joined(at_broker) as (listener, connector):
        sent = 0
        while connector._loop.unsent_bytes == 0:  # type: ignore[attr-defined]  # until the sockets' buffers are full
            sent += connector.send(large, 0)
        assert connector.drain(deadline_ns())
        abandon(connector)

        batch = FrameBatch()
        received = 0

        def have_all() -> bool:
            nonlocal received
            batch.clear()
            received += listener.receive(batch)
            return received == sent

        serve_links_until(have_all, listener)
