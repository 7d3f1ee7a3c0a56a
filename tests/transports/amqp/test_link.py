"""Promises of a link over a real broker beyond the contract, and its failures."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pika.exceptions import ChannelClosedByBroker

from tests.transports.conftest import TOKEN, carry, deadline_ns, joined, until
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
from transports.amqp.session import explain
from transports.base import Address, BadAddress, CannotListen, Link, PeerGone, TransportError, mask
from transports.frames import FrameBatch
from transports.registry import connect, listen, transport_of

CLIENTS = ("compiled", "pika")
GREETING = b"hello"
NUMBERED = [n.to_bytes(4, "little") for n in range(1000)]
"""More than a link acknowledges together, ACK_BATCH."""


@pytest.fixture
def at_broker(broker_place: str) -> str:
    return f"amqp://{broker_place}"


def abandon(link: object) -> None:
    """End a connection as SIGKILL does: close the socket without a word to the broker."""
    descriptor = link._loop.descriptor  # type: ignore[attr-defined]
    sock = socket.socket(fileno=os.dup(descriptor))
    sock.shutdown(socket.SHUT_RDWR)
    sock.close()


def inherit(url: str) -> Link:
    """The queue of a consumer that was killed is free once the broker has noticed."""
    until_ns = deadline_ns()
    while True:
        try:
            return listen(url, TOKEN)
        except CannotListen:
            assert time.monotonic_ns() < until_ns, "the broker never noticed that the consumer is gone"


@pytest.mark.parametrize("delivery", ["confirmed", "durable"])
@pytest.mark.parametrize("client", CLIENTS)
def test_no_confirmed_message_is_lost_when_its_consumer_is_killed(client: str, delivery: str, at_broker: str) -> None:
    url = f"{at_broker}?client={client}&delivery={delivery}"
    got: list[bytes] = []
    with joined(url) as (listener, connector):
        sent, orders, batch = 0, FrameBatch.of(*NUMBERED), FrameBatch(500)
        while sent < len(NUMBERED) or not connector.drain(deadline_ns(10)):
            sent = connector.send(orders, sent)
        until(lambda: listener.receive(batch) > 0, listener)
        got += list(batch)  # received, and not yet settled
        abandon(listener)
        heir = inherit(url)
        batch = FrameBatch(10_000)
        until(lambda: heir.receive(batch) >= 0 and set(got) | set(batch) >= set(NUMBERED), heir)
        again = [frame for frame in batch if frame != GREETING]  # which may not have been settled either
        assert again == NUMBERED[-len(again) :], "what comes again comes in order"
        assert heir.facts()["redelivered"] > 0
        heir.close()


@pytest.mark.parametrize("delivery", ["acked", "confirmed"])
def test_what_was_settled_does_not_come_again(delivery: str, at_broker: str) -> None:
    url = f"{at_broker}?delivery={delivery}"
    with joined(url) as (listener, connector):
        carry(connector, listener, FrameBatch.of(*NUMBERED))
        listener.close()
        assert listen_and_take(url) == []


def listen_and_take(url: str) -> list[bytes]:
    heir, batch = listen(url, TOKEN), FrameBatch(10_000)
    until(lambda: heir.receive(batch) == 0, heir)
    heir.close()
    return list(batch)


def test_a_publisher_whose_window_is_full_goes_on_as_confirms_come(at_broker: str) -> None:
    orders = FrameBatch.of(*NUMBERED * 5)
    with joined(f"{at_broker}?delivery=confirmed") as (listener, connector):
        first = connector.send(orders, 0)
        assert first < orders.count, "a window bounds what is unconfirmed"
        batch, sent = FrameBatch(1 << 15), first

        def all_there() -> bool:
            nonlocal sent
            sent = connector.send(orders, sent)
            listener.receive(batch)
            return batch.count == orders.count

        until(all_there, listener, connector)
        assert list(batch) == NUMBERED * 5
        assert connector.drain(deadline_ns(10))
        assert connector.facts()["confirmed"] == connector.facts()["published"]


def test_two_that_publish_at_each_other_without_reading_do_not_deadlock(at_broker: str) -> None:
    """Confirms queue behind deliveries on a shared connection: what waits for one sets the other aside."""
    many = FrameBatch.of(*NUMBERED * 9)
    assert CONFIRM_WINDOW < PREFETCH < many.count, "neither end could send or receive all of it at once"
    with joined(f"{at_broker}?delivery=confirmed") as ends:
        sent = [0, 0]

        def both_sent() -> bool:
            for side, link in enumerate(ends):
                sent[side] = link.send(many, sent[side])
                link.wait(deadline_ns(0.001), readable=False, writable=True)
            return sent == [many.count, many.count]

        until(both_sent)
        for link in ends:
            batch = FrameBatch(1 << 15)
            until(lambda link=link, batch=batch: link.receive(batch) >= 0 and batch.count == many.count, link)
            assert list(batch) == NUMBERED * 9


def test_runs_never_meet(at_broker: str) -> None:
    with joined(at_broker) as (listener, connector):
        stranger = connect(at_broker, "another-run", deadline_ns())
        stranger.send(FrameBatch.of(b"an order of another run"), 0)
        assert list(carry(connector, listener, FrameBatch.of(*NUMBERED))) == NUMBERED
        assert listener.receive(FrameBatch()) == 0
        stranger.close()


def test_a_second_consumer_is_refused(at_broker: str) -> None:
    with joined(at_broker), pytest.raises(TransportError, match="taken"):
        listen(at_broker, TOKEN)


def test_a_probe_sees_how_deep_the_queues_are_and_takes_them_down(at_broker: str) -> None:
    url = f"{at_broker}?delivery=confirmed"
    listener, connector = listen(url, TOKEN), connect(url, TOKEN, deadline_ns())
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


def test_a_probe_with_a_closed_channel_takes_nothing_down(at_broker: str) -> None:
    """The broker closed it, and was frozen before it opened another."""
    probe = RabbitMqProbe(at_broker, TOKEN)
    session = probe._session
    session.channel.close()
    session.wait_for(lambda: session.channel.is_closed or session._problem is not None, deadline_ns())
    session._problem = None
    probe.take_down()
    probe.close()


def test_a_broker_that_goes_away_is_peer_gone(at_broker: str) -> None:
    with joined(at_broker) as (listener, _):
        abandon(listener)
        with pytest.raises(PeerGone, match="went away"):
            until(lambda: listener.receive(FrameBatch()) > 0, listener)


def test_a_wrong_password_is_said(at_broker: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PASSWORD, "wrong")
    with pytest.raises(BadAddress, match=r"refuses user 'exchange'.*EXCHANGE_AMQP_PASSWORD"):
        listen(at_broker, TOKEN)


def test_an_unknown_vhost_is_said(at_broker: str) -> None:
    with pytest.raises(BadAddress, match="has no vhost 'nowhere'"):
        listen(f"{at_broker.rpartition('/')[0]}/nowhere", TOKEN)


def test_nobody_there_is_said() -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        with pytest.raises(PeerGone, match=r"cannot be reached: .*refused"):
            listen(f"amqp://guest@127.0.0.1:{holder.getsockname()[1]}/", TOKEN)


@pytest.fixture
def other_protocol() -> Iterator[int]:
    """Something that answers whatever comes with a greeting of its own, and hangs up."""

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
def test_another_protocol_is_said(client: str, other_protocol: int) -> None:
    with pytest.raises(TransportError, match=r"AMQP|went away|closed"):
        listen(f"amqp://guest@127.0.0.1:{other_protocol}/?client={client}", TOKEN)


def address(url: str) -> BrokerAddress:
    parsed = Address.parse(url, TOKEN)
    transport_of(parsed.scheme).check(parsed)
    return BrokerAddress.of(parsed)


@pytest.mark.parametrize(
    ("reply", "kind", "words"),
    [
        ("ACCESS_REFUSED - queue 'q' in vhost '/' in exclusive use", CannotListen, "is taken; choose another run"),
        ("ACCESS_REFUSED - access to queue 'q' in vhost '/' refused for user 'u'", TransportError, "refuses: ACCESS"),
    ],
)
def test_only_a_queue_that_another_has_counts_as_taken(reply: str, kind: type[TransportError], words: str) -> None:
    """One that the user may not use does not."""
    with pytest.raises(TransportError, match=words) as refused:
        explain(ChannelClosedByBroker(403, reply), address("amqp://u@host"))
    assert refused.type is kind


def test_an_address_has_parts_and_defaults() -> None:
    plain, full = address("amqp://host"), address("amqps://me@host:99/a%2Fb?client=pika&delivery=durable")
    assert (plain.port, plain.user, plain.vhost, plain.client, plain.delivery.name) == (
        5672,
        "guest",
        "/",
        "compiled",
        "lossy",
    )
    assert (full.port, full.user, full.vhost, full.client, full.tls) == (99, "me", "a/b", "pika", True)


@pytest.mark.parametrize(
    ("url", "said"),
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
def test_a_bad_address_is_said_without_its_password(url: str, said: str) -> None:
    with pytest.raises(BadAddress, match=said) as refused:
        address(url)
    assert "secret" not in str(refused.value)


def test_passwords_are_masked() -> None:
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
    """The first ended in a traceback; a pipe was waited for, for ever."""
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


def test_heartbeats_are_asked_for(at_broker: str) -> None:
    with joined(at_broker) as (listener, _):
        assert listener._loop.connection.params.heartbeat == HEARTBEAT_S  # type: ignore[attr-defined]


def test_what_was_drained_is_at_the_broker_however_the_publisher_ends(at_broker: str) -> None:
    large = FrameBatch.of(*[bytes(50_000)] * 10)
    with joined(at_broker) as (listener, connector):
        sent, batch, came = 0, FrameBatch(), 0
        while connector._loop.unsent_bytes == 0:  # type: ignore[attr-defined]  # more than the sockets between hold
            sent += connector.send(large, 0)
        assert connector.drain(deadline_ns())
        abandon(connector)

        def all_came() -> bool:
            nonlocal came
            batch.clear()
            came += listener.receive(batch)
            return came == sent

        until(all_came, listener)
