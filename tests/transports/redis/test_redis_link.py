"""How two ends meet at a Redis server, how each notices that the other has left, and what goes wrong in words."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.transports.conftest import TOKEN, carry, deadline_ns, frames_until_gone, greet, joined, serve_links_until
from tests.transports.redis.conftest import HELLO, server_that_answers
from transports.base import Address, BadAddress, Link, Pattern, PeerGone
from transports.declaration import RunningBroker, ServerPlace
from transports.frames import FrameBatch
from transports.lending import NOTICE, lent_by
from transports.redis.carriers import StreamCarrier
from transports.redis.connection import PASSWORD, RedisConnection
from transports.redis.link import RedisLink
from transports.redis.names import words_of_run
from transports.redis.server import Redis
from transports.registry import connect, listen
from transports.server_stream import END

LIST_KERNELS = Path(__file__).parents[1] / "list_kernels.py"


@pytest.fixture(params=["", "?kind=stream"], ids=["pubsub", "stream"])
def url(request: pytest.FixtureRequest, redis: RunningBroker) -> str:
    """A URL of each kind at the server that all tests share."""
    return f"{redis.url}{request.param}"


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RunningBroker]:
    """A server of the test's own, whose settings it may change."""
    with Redis().start(tmp_path / "server", None, nodelay=True, where=ServerPlace()) as running:
        monkeypatch.setenv(PASSWORD, running.environment[PASSWORD])
        yield running


@contextlib.contextmanager
def administrator(url: str) -> Iterator[RedisConnection]:
    connection = RedisConnection.open(Address.parse(url, TOKEN), deadline_ns())
    yield connection
    connection.close()


KEY = f"{words_of_run(TOKEN)}:pair:1:in"
"""The stream of frames to the listener of `joined`."""


def pending(admin: RedisConnection) -> int:
    """The number of entries that the listener's reads have taken and it has not acknowledged."""
    return int(admin.ask("XPENDING", KEY, "exchange")[0])


def until_acknowledged(listener: Link, admin: RedisConnection) -> None:
    """Have the listener receive until it has acknowledged everything."""

    def has_acknowledged() -> bool:
        listener.receive(FrameBatch())
        return pending(admin) == 0

    serve_links_until(has_acknowledged, listener)


def cut_off(link: Link) -> None:
    """End a link as the death of its process does: both connections close, and nothing is said or deleted."""
    assert isinstance(link, RedisLink)
    link._wires.close()


@pytest.mark.parametrize("leaver", [0, 1], ids=["the listener leaves", "the connector leaves"])
def test_a_peer_that_left_is_noticed_after_its_last_frame(url: str, leaver: int) -> None:
    with joined(url) as ends:
        stays = ends[1 - leaver]
        ends[leaver].send(FrameBatch.of(b"last"), 0)
        assert ends[leaver].drain(deadline_ns())
        cut_off(ends[leaver])
        batch = FrameBatch()
        with pytest.raises(PeerGone, match="has left the Redis server"):
            serve_links_until(lambda: stays.receive(batch) > 1, stays)
        assert list(batch) == [b"last"]


def test_frames_that_came_before_the_connection_ended_are_taken_first(redis: RunningBroker) -> None:
    sent = [bytes([number]) * 1000 for number in range(100)]
    with joined(redis.url) as (listener, connector):
        assert isinstance(listener, RedisLink)
        messages = listener._wires.messages
        assert connector.send(FrameBatch.of(*sent), 0) == 100
        assert connector.drain(deadline_ns())

        def all_have_come() -> bool:
            messages.fill()
            return messages.incoming[: int(messages.bounds[END])].tobytes().endswith(sent[-1] + b"\r\n")

        serve_links_until(all_have_come)
        messages._socket.shutdown(socket.SHUT_RDWR)
        assert frames_until_gone(listener) == sent


def test_a_pair_that_lost_its_peer_is_open_to_the_next_one(url: str) -> None:
    with joined(url) as (listener, connector):
        connector.close()
        with pytest.raises(PeerGone):
            serve_links_until(lambda: listener.receive(FrameBatch()) > 0, listener)
        successor = connect(url, TOKEN, deadline_ns())
        serve_links_until(lambda: lent_by(listener) is not None, listener, successor)
        greet(successor, listener)
        successor.close()


def test_a_second_connector_of_a_pair_is_refused_in_words(url: str) -> None:
    with joined(url) as (listener, _):
        second = connect(url, TOKEN, deadline_ns())
        with pytest.raises(PeerGone, match="has its one peer already"):
            serve_links_until(lambda: second.receive(FrameBatch()) > 0, second, listener)
        second.close()
        assert listener.refused > 0


def test_pairs_and_runs_at_one_server_do_not_hear_each_other(redis: RunningBroker) -> None:
    with joined(redis.url) as (listener, _), joined(f"{redis.url}?pair=2") as (_, other_connector):
        other_connector.send(FrameBatch.of(b"for pair 2"), 0)
        assert other_connector.drain(deadline_ns())
        listener.wait(time.monotonic_ns() + 20_000_000)
        assert listener.receive(FrameBatch()) == 0


@pytest.mark.parametrize("size", [1, 300_000])
def test_what_a_killed_listener_had_not_handed_over_reaches_the_next_one(redis: RunningBroker, size: int) -> None:
    """The guarantee of a stream: its reader may die."""
    url = f"{redis.url}?kind=stream"
    sent = [digit * size for digit in (b"1", b"2", b"3")]
    with joined(url) as (listener, connector), administrator(url) as admin:
        until_acknowledged(listener, admin)
        assert connector.send(FrameBatch.of(*sent), 0) == 3
        assert connector.drain(deadline_ns())
        serve_links_until(lambda: pending(admin) > 0)  # the listener's read has them now
        cut_off(listener)
        next_one = listen(url, TOKEN)
        batch = FrameBatch(16, 1 << 20, 1 << 20)
        serve_links_until(lambda: next_one.receive(batch) >= 0 and batch.count >= 3, next_one)
        assert list(batch)[-3:] == sent
        next_one.close()
        cut_off(connector)


def test_what_was_handed_over_and_read_on_is_acknowledged_and_cut_off(redis: RunningBroker) -> None:
    url = f"{redis.url}?kind=stream"
    with joined(url) as (listener, connector), administrator(url) as admin:
        for _ in range(5):
            carry(connector, listener, FrameBatch.of(*[b"frame"] * 300))
        until_acknowledged(listener, admin)
        assert admin.ask("XLEN", KEY) < 1000
        probe = Redis().probe(url, [Address.parse(url, TOKEN)])
        assert set(probe.depth()) >= {"pair:1:in"}
        probe.close()


def test_a_run_s_streams_are_deleted_by_its_probe(redis: RunningBroker) -> None:
    url = f"{redis.url}?kind=stream"
    ends = [listen(url, "a killed [run]*")]
    ends.append(connect(url, "a killed [run]*", deadline_ns()))
    for end in ends:
        cut_off(end)
    probe = Redis().probe(url, [Address.parse(url, "a killed [run]*")])
    assert len(probe.depth()) == 2
    probe.take_down()
    assert probe.depth() == {}
    probe.close()


def test_a_subscriber_that_reads_too_slowly_is_told_why_the_server_hung_up(own: RunningBroker) -> None:
    with administrator(own.url) as admin:
        admin.ask("CONFIG", "SET", "client-output-buffer-limit", "pubsub 1mb 1mb 1")
    frames = FrameBatch.of(*[bytes(10_000)] * 100)
    with joined(own.url) as (listener, connector):
        assert own.server is not None

        def has_hung_up() -> bool:
            connector.send(frames, 0)
            assert own.server is not None
            return bool(own.server.facts()["slow_clients"])

        serve_links_until(has_hung_up, connector)
        connector.send(FrameBatch.of(b"to nobody"), 0)
        with pytest.raises(PeerGone, match=r"still running.*too slow.*pubsub allows \(1048576 1048576 1\)"):
            serve_links_until(lambda: listener.receive(FrameBatch()) < 0, listener)
        with pytest.raises(PeerGone, match="has left the Redis server"):
            serve_links_until(lambda: connector.receive(FrameBatch()) > 0, connector)
        assert connector.facts()["reached_nobody"] > 0
        assert own.server.facts()["slow_clients"] == 1


def test_a_message_that_the_server_has_no_memory_for_is_an_error_in_words(own: RunningBroker) -> None:
    url = f"{own.url}?kind=stream"
    with joined(url) as (_, connector):
        with administrator(url) as admin:
            admin.ask("CONFIG", "SET", "maxmemory", "1mb")
            admin.ask("CONFIG", "SET", "maxmemory-policy", "noeviction")

        def is_refused() -> bool:
            connector.send(FrameBatch.of(b"an order"), 0)
            return connector.receive(FrameBatch()) > 0

        with pytest.raises(PeerGone, match=r"refused a message: OOM .*: its memory is full: raise its maxmemory"):
            serve_links_until(is_refused, connector)


def test_a_stream_that_somebody_deletes_is_an_error_in_words(redis: RunningBroker) -> None:
    url = f"{redis.url}?kind=stream"
    with joined(url) as (listener, _), administrator(url) as admin:
        admin.ask("DEL", f"{words_of_run(TOKEN)}:pair:1:in")
        with pytest.raises(PeerGone, match=r"refused a message: (UNBLOCKED|NOGROUP)"):
            serve_links_until(lambda: listener.receive(FrameBatch()) > 0, listener)


def test_nobody_who_listens_is_an_error_that_names_the_server(url: str) -> None:
    with pytest.raises(PeerGone, match="nobody listens at the Redis server"):
        connect(url, "a run without a listener", time.monotonic_ns() + 50_000_000, Pattern.FAN_IN)


@pytest.mark.parametrize(
    ("password", "sentence"), [("wrong", "WRONGPASS"), ("", f"NOAUTH .*: set {PASSWORD} to its password")]
)
def test_a_wrong_password_names_the_variable(
    redis: RunningBroker, monkeypatch: pytest.MonkeyPatch, password: str, sentence: str
) -> None:
    monkeypatch.setenv(PASSWORD, password)
    with pytest.raises(BadAddress, match=sentence) as refused:
        listen(redis.url, TOKEN)
    assert PASSWORD in str(refused.value)


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "is no Redis server: it began with b'HTTP/1.1 400"),
        (b"+OK\r\n", "is no Redis server: it answered b'OK'"),
        (b"-ERR unknown command `HELLO`, with args\r\n", r"it is older than Redis 6\.0, which this transport needs"),
        (b"-NOPROTO unsupported protocol version\r\n", "it is no Redis 6 or newer"),
        (b"-DENIED Redis is running in protected mode\r\n", f"open to its own host only.*set {PASSWORD}"),
        (b"", "wants TLS, which this transport lacks: it closed the connection at our first command"),
    ],
)
def test_a_server_of_another_kind_is_named(answer: bytes, sentence: str) -> None:
    with server_that_answers(answer) as url, pytest.raises(BadAddress, match=sentence):
        listen(url, TOKEN)


def test_a_server_that_greets_unasked_is_no_redis_server() -> None:
    greeting = b'INFO {"server_id":"N","version":"2.10.0"}\r\n'
    with server_that_answers(greeting=greeting) as url, pytest.raises(BadAddress, match="began with b'INFO"):
        listen(url, TOKEN)


def test_a_server_too_old_for_streams_is_named_with_the_version_that_has_them() -> None:
    old = HELLO.replace(b"7.2.4", b"6.0.9")
    with (
        server_that_answers(old, b"+OK\r\n") as url,
        pytest.raises(BadAddress, match=r"kind=stream needs Redis 6\.2 or newer; .* is version 6\.0\.9"),
    ):
        listen(f"{url}?kind=stream", TOKEN)


def test_a_member_of_a_cluster_says_where_the_stream_is() -> None:
    nobody = b"*2\r\n$5\r\nwords\r\n:0\r\n"
    moved = b"-MOVED 3999 10.0.0.7:6381\r\n"
    with (
        server_that_answers(HELLO, nobody, moved) as url,
        pytest.raises(BadAddress, match=r"a cluster that keeps this stream at 10\.0\.0\.7:6381: name that one"),
    ):
        listen(f"{url}?kind=stream", TOKEN)


def test_no_server_is_an_error_that_names_the_place() -> None:
    with pytest.raises(PeerGone, match=r"no Redis server answers at 127\.0\.0\.1:1 "):
        connect("redis://127.0.0.1:1", TOKEN, time.monotonic_ns())


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("redis://me:secret@127.0.0.1:6379", f"a URL takes no password: set {PASSWORD}"),
        ("redis://127.0.0.1:99999", "the port is to be 1..65535"),
        ("redis://127.0.0.1:6379/0", "'/0' means nothing here"),
        ("redis://:6379", "lacks a host"),
        ("redis://127.0.0.1:6379?kind=list", "kind is 'list'; it takes pubsub, stream"),
    ],
)
def test_a_wrong_address_says_what_is_wrong(url: str, sentence: str) -> None:
    with pytest.raises(BadAddress, match=sentence):
        listen(url, TOKEN)


def test_lent_calls_carry_frames_and_leave_the_rest_to_python(url: str) -> None:
    with joined(url) as (listener, connector):
        serve_links_until(lambda: lent_by(listener) is not None and lent_by(connector) is not None, listener, connector)
        sender, receiver = lent_by(connector), lent_by(listener)
        assert sender is not None
        assert receiver is not None
        sent = FrameBatch.of(*[os.urandom(20) for _ in range(700)])
        received = FrameBatch()
        assert sender.send.plain(sender.numbers, sender.memory, sent.buffer, sent.offsets, 0, sent.count) == sent.count
        end_ns = deadline_ns()
        while received.count < sent.count:
            assert time.monotonic_ns() < end_ns
            received.count = receiver.receive.plain(
                receiver.numbers, receiver.memory, received.buffer, received.offsets, received.count, 1 << 17
            )
            receiver.sleep.plain(receiver.numbers, receiver.memory, time.monotonic_ns() + 1_000_000)
            if receiver.numbers[NOTICE]:
                receiver.settle()
                listener.receive(received)
        assert list(received) == list(sent)
        assert isinstance(listener, RedisLink)
        assert listener.facts()["kind"] == ("stream" if isinstance(listener._carrier, StreamCarrier) else "pubsub")


KERNELS = {
    "": {"lay_out:1", "scan_messages:1", "scan_replies:1"},
    "?kind=stream": {"lay_out:1", "lay_out_acknowledgement:1", "lay_out_read:1", "scan_entries:1", "scan_replies:1"},
}
"""The kernels that Python calls, by kind, each with the number of its compiled signatures."""


@pytest.mark.parametrize("query", KERNELS, ids=["pubsub", "stream"])
def test_an_open_link_has_its_kernels(redis: RunningBroker, query: str) -> None:
    """Nothing compiles once frames flow."""
    command = [sys.executable, str(LIST_KERNELS), f"{redis.url}{query}", "pair"]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert KERNELS[query] <= set(output.split())


@pytest.mark.parametrize(
    ("query", "end", "scanner"),
    [
        ("", "subscriber", "scan_published:1"),
        ("", "fanout", "scan_messages:1"),
        ("", "requests", "scan_published:1"),
        ("?kind=stream", "queue", "scan_entries:1"),
        ("?kind=stream", "subscriber", "scan_entries:1"),
    ],
)
def test_an_open_link_among_many_has_its_kernels(redis: RunningBroker, query: str, end: str, scanner: str) -> None:
    """Regression: subscribers compiled for ten seconds on a busy machine while messages waited, and gave up."""
    command = [sys.executable, str(LIST_KERNELS), f"{redis.url}{query}", end]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert {scanner, "lay_out:1", "scan_replies:1"} <= set(output.split())
