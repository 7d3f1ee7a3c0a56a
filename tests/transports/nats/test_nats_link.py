"""How two ends meet at a NATS server, how each notices that the other has left, and what goes wrong in words."""

from __future__ import annotations

import socket
import time
from pathlib import Path

import pytest

from tests.transports.conftest import TOKEN, deadline_ns, frames_until_gone, greet, joined, serve_links_until
from tests.transports.nats.conftest import server_that_sends
from transports.base import BadAddress, Link, Pattern, PeerGone
from transports.declaration import RunningBroker, ServerPlace
from transports.frames import FrameBatch
from transports.lending import lent_by
from transports.nats.connection import PASSWORD, Connection
from transports.nats.link import NatsLink
from transports.nats.server import Nats, PrivateNats
from transports.registry import connect, listen
from transports.server_stream import END

INFO = b'INFO {"version":"2.10.0","max_payload":1048576}\r\n'


@pytest.mark.parametrize("client", ["compiled", "nats-py"])
@pytest.mark.parametrize("leaver", [0, 1], ids=["the listener leaves", "the connector leaves"])
def test_a_peer_that_left_is_noticed_after_its_last_frame(nats: RunningBroker, leaver: int, client: str) -> None:
    with joined(f"{nats.url}?client={client}") as ends:
        stays = ends[1 - leaver]
        ends[leaver].send(FrameBatch.of(b"last"), 0)
        ends[leaver].close()
        batch = FrameBatch()
        with pytest.raises(PeerGone, match="has left the NATS server"):
            serve_links_until(lambda: stays.receive(batch) > 1, stays)
        assert list(batch) == [b"last"]


def test_frames_that_came_before_the_connection_ended_are_taken_first(nats: RunningBroker) -> None:
    sent = [bytes([number]) * 1000 for number in range(100)]
    with joined(nats.url) as (listener, connector):
        assert isinstance(listener, NatsLink)
        connection = listener._connection
        assert connector.send(FrameBatch.of(*sent), 0) == 100
        assert connector.drain(deadline_ns())

        def all_have_come() -> bool:
            connection.fill()
            return connection.incoming[: int(connection.bounds[END])].tobytes().endswith(sent[-1] + b"\r\n")

        serve_links_until(all_have_come)
        listener._next_check_ns = deadline_ns()  # a check would write to the connection that is shut down
        connection._socket.shutdown(socket.SHUT_RDWR)
        assert frames_until_gone(listener) == sent


def test_what_send_took_arrives_although_the_sender_left_words_unread(nats: RunningBroker) -> None:
    """A socket that is closed with unread bytes resets its connection, and the server drops what it has not read."""
    frames = FrameBatch.of(*[bytes(1000)] * 1000)
    received = FrameBatch(20_000, 30_000_000)
    with joined(nats.url) as (listener, connector):
        listener.send(FrameBatch.of(b"unread"), 0)
        assert listener.drain(deadline_ns())
        for _ in range(20):
            first = 0
            while first < frames.count:
                first = connector.send(frames, first)
        connector.close(60.0)
        with pytest.raises(PeerGone, match="has left"):
            serve_links_until(lambda: listener.receive(received) < 0, listener)
    assert received.count == 20_000


def test_a_pair_that_lost_its_peer_is_open_to_the_next_one(nats: RunningBroker) -> None:
    with joined(nats.url) as (listener, connector):
        connector.close()
        with pytest.raises(PeerGone):
            serve_links_until(lambda: listener.receive(FrameBatch()) > 0, listener)
        successor = connect(nats.url, TOKEN, deadline_ns())
        serve_links_until(lambda: lent_by(listener) is not None, listener, successor)
        greet(successor, listener)
        successor.close()


def test_a_frame_sent_right_after_the_hello_reaches_the_connector(
    nats: RunningBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server drops a frame for a connector that has not subscribed to frames yet."""
    listener = listen(nats.url, TOKEN)
    frames = FrameBatch.of(b"at once")
    first = 0
    write = Connection.write

    def write_after_the_listener_has_sent(connection: Connection, line: bytes) -> None:
        nonlocal first
        is_subscription_to_frames = b".out." in line
        if is_subscription_to_frames:
            listener.wait(time.monotonic_ns() + 50_000_000)
            listener.wait(time.monotonic_ns())
            first = listener.send(frames, first)
        write(connection, line)

    monkeypatch.setattr(Connection, "write", write_after_the_listener_has_sent)
    connector = connect(nats.url, TOKEN, deadline_ns())
    received = FrameBatch()

    def has_come() -> bool:
        nonlocal first
        if first < frames.count:
            first = listener.send(frames, first)
        return connector.receive(received) > 0

    serve_links_until(has_come, listener, connector)
    assert list(received) == [b"at once"]
    connector.close()
    listener.close()


def test_a_second_connector_of_a_pair_is_refused_in_words(nats: RunningBroker) -> None:
    with joined(nats.url) as (listener, _):
        second = connect(nats.url, TOKEN, deadline_ns())
        with pytest.raises(PeerGone, match="has its one peer already"):
            serve_links_until(lambda: second.receive(FrameBatch()) > 0, second, listener)
        second.close()
        assert listener.refused > 0


def test_pairs_and_runs_at_one_server_do_not_hear_each_other(nats: RunningBroker) -> None:
    with joined(nats.url) as (listener, _), joined(f"{nats.url}?pair=2") as (_, other_connector):
        other_connector.send(FrameBatch.of(b"for pair 2"), 0)
        assert other_connector.drain(deadline_ns())
        listener.wait(time.monotonic_ns() + 20_000_000)
        assert listener.receive(FrameBatch()) == 0


def test_nobody_who_listens_is_an_error_that_names_the_server(nats: RunningBroker) -> None:
    with pytest.raises(PeerGone, match="nobody listens at the NATS server"):
        connect(nats.url, "a run without a listener", time.monotonic_ns() + 50_000_000, Pattern.FAN_IN)


def test_a_wrong_password_names_the_variable(nats: RunningBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PASSWORD, "wrong")
    with pytest.raises(BadAddress, match=f"Authorization Violation: set {PASSWORD}"):
        listen(nats.url, TOKEN)


@pytest.mark.parametrize(
    ("first_line", "sentence"),
    [
        (b"220 mail.example ESMTP\r\n", "is no NATS server: it began with '220'"),
        (b'INFO {"version":"2.10.0","tls_required":true}\r\n', "takes TLS only"),
        (b'INFO {"version":"2.1.9"}\r\n', r"is NATS 2\.1\.9; this transport needs NATS 2\.2 or newer"),
    ],
)
def test_another_server_at_the_port_is_named(first_line: bytes, sentence: str) -> None:
    with server_that_sends(first_line) as url, pytest.raises(BadAddress, match=sentence):
        listen(url, TOKEN)


def test_a_server_that_hangs_up_on_a_slow_consumer_is_quoted() -> None:
    nobody = b"HMSG exchange.nobody 4 16 16\r\nNATS/1.0 503\r\n\r\n\r\nPONG\r\n"
    answers = (INFO, b"", b"PONG\r\n", b"", b"PONG\r\n", b"", b"", nobody, b"", b"", b"-ERR 'Slow Consumer'\r\n")
    with server_that_sends(*answers) as url:
        link = listen(url, TOKEN)
        with pytest.raises(
            PeerGone,
            match=r"the NATS server at .* went away: Slow Consumer: it had more for us than it keeps.*max_pending",
        ):
            serve_links_until(lambda: link.receive(FrameBatch()) > 0, link)
        link.close()


def test_a_consumer_joins_a_queue_from_which_messages_come_at_once() -> None:
    answers = (INFO, b"", b"PONG\r\n", b"MSG queue 1 5\r\nframe\r\n", b"")
    with server_that_sends(*answers) as url:
        consumer = listen(url, TOKEN, Pattern.QUEUE)
        received = FrameBatch()
        serve_links_until(lambda: consumer.receive(received) > 0)
        assert list(received) == [b"frame"]
        consumer.close()


def test_no_server_is_an_error_that_names_the_place() -> None:
    with pytest.raises(PeerGone, match=r"no NATS server answers at 127\.0\.0\.1:1 "):
        connect("nats://127.0.0.1:1", TOKEN, time.monotonic_ns())


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("nats://me:secret@127.0.0.1:4222", f"a URL takes no password: set {PASSWORD}"),
        ("nats://127.0.0.1:99999", "the port is to be 1..65535"),
        ("nats://127.0.0.1:4222/vhost", "'/vhost' means nothing here"),
        ("nats://:4222", "lacks a host"),
    ],
)
def test_a_wrong_address_says_what_is_wrong(url: str, sentence: str) -> None:
    with pytest.raises(BadAddress, match=sentence):
        listen(url, TOKEN)


def test_a_subscriber_that_came_before_its_publisher_misses_nothing(nats: RunningBroker) -> None:
    subscriber = connect(nats.url, TOKEN, deadline_ns(), Pattern.TOPIC, ("news.#",))
    publisher = listen(nats.url, TOKEN, Pattern.TOPIC, ("news",))
    received = FrameBatch()
    serve_links_until(lambda: len(publisher._subscribers) == 1, subscriber, publisher)  # type: ignore[attr-defined]
    assert publisher.send(FrameBatch.of(b"first"), 0) == 1
    serve_links_until(lambda: subscriber.receive(received) > 0, subscriber, publisher)
    assert list(received) == [b"first"]
    subscriber.close()
    publisher.close()


def test_a_publisher_to_a_queue_without_consumers_keeps_its_frames(nats: RunningBroker) -> None:
    """NATS would drop them."""
    publisher = connect(nats.url, TOKEN, deadline_ns(), Pattern.QUEUE)
    frames = FrameBatch.of(b"first")
    assert publisher.send(frames, 0) == 0
    assert "nobody consumes" in publisher.excuse()
    consumer = listen(nats.url, TOKEN, Pattern.QUEUE)
    received = FrameBatch()
    sent = 0

    def has_come() -> bool:
        nonlocal sent
        if not sent:
            sent = publisher.send(frames, 0)
        return consumer.receive(received) > 0

    serve_links_until(has_come, publisher, consumer)
    publisher.close()
    consumer.close()


def test_a_wildcard_that_nats_lacks_is_refused(nats: RunningBroker) -> None:
    with pytest.raises(BadAddress, match="may have a # at its end only"):
        connect(nats.url, TOKEN, deadline_ns(), Pattern.TOPIC, ("news.#.usa",))


def test_our_own_slowness_is_not_taken_for_the_server_s_silence(
    nats: RunningBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first look compiles kernels, which may take longer than a server may take to answer."""
    monkeypatch.setattr("transports.nats.connection.ANSWER_S", 0.05)
    look = Connection.next_control
    looks = 0

    def slow_first_look(connection: Connection) -> object:
        nonlocal looks
        looks += 1
        if looks == 1:
            end_ns = time.monotonic_ns() + 60_000_000
            while time.monotonic_ns() < end_ns:
                pass
            return None
        return look(connection)

    monkeypatch.setattr(Connection, "next_control", slow_first_look)
    with joined(nats.url):
        assert looks > 1


def use_until_gone(link: Link, sees_it_by: str) -> None:
    """Receive all that comes, or only send, until that raises PeerGone."""
    if sees_it_by == "receive":
        serve_links_until(lambda: link.receive(FrameBatch()) < 0, link)
    else:
        serve_links_until(lambda: link.send(FrameBatch.of(b"frame"), 0) < 0)


@pytest.mark.parametrize("sees_it_by", ["receive", "send"])
def test_a_server_that_hangs_up_and_lives_on_may_have_found_us_too_slow(
    sees_it_by: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = Nats().with_options({"max_pending": str(1 << 20)})
    with broker.start(tmp_path / "server", process_group=None, nodelay=True, where=ServerPlace()) as running:
        monkeypatch.setenv(PASSWORD, running.environment[PASSWORD])
        assert isinstance(running.server, PrivateNats)
        with joined(f"{running.url}?rcvbuf=4096") as (slow, quick):
            frames = FrameBatch.of(*[bytes(10_000)] * 100)
            first = 0

            def hung_up() -> bool:
                nonlocal first
                first = quick.send(frames, first) % frames.count
                return running.server.facts()["slow_clients"] > 0

            serve_links_until(hung_up, quick)
            with pytest.raises(PeerGone, match=r"but it is still running\. .*\(Slow Consumer\): .*max_pending"):
                use_until_gone(slow, sees_it_by)


@pytest.mark.parametrize("sees_it_by", ["receive", "send"])
def test_a_message_over_the_server_s_limit_is_named_with_the_limit(
    sees_it_by: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("transports.nats.server.JETSTREAM", "max_payload: 1000\n")
    with Nats().start(tmp_path / "server", process_group=None, nodelay=True, where=ServerPlace()) as running:
        monkeypatch.setenv(PASSWORD, running.environment[PASSWORD])
        with joined(running.url) as (_, connector):
            connector.send(FrameBatch.of(bytes(2000)), 0)
            with pytest.raises(PeerGone, match="Maximum Payload Violation: it takes messages of at most 1000 bytes"):
                use_until_gone(connector, sees_it_by)
