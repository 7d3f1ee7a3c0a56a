"""delivery=durable: what a stream of JetStream keeps if a reader or the server dies, and what it refuses, in words."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.machine import until
from tests.transports.conftest import TOKEN, carry, deadline_ns, greet, joined, serve_links_until
from transports.base import Address, BadAddress, Link, Pattern, PeerGone
from transports.declaration import BreakableServer, RunningBroker, ServerPlace
from transports.frames import FrameBatch
from transports.nats import connection, jetstream
from transports.nats.connection import PASSWORD
from transports.nats.jetstream import WINDOW, JetStreamCarrier
from transports.nats.link import NatsLink
from transports.nats.server import Nats, NatsProbe, PrivateNats
from transports.registry import connect, listen

MESSAGES = 600


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RunningBroker]:
    """A server of the test's own that syncs before it confirms."""
    broker = Nats().with_options({"sync": "always"})
    with broker.start(tmp_path / "server", None, nodelay=True, where=ServerPlace()) as running:
        monkeypatch.setenv(PASSWORD, running.environment[PASSWORD])
        yield running


@pytest.fixture
def url(nats: RunningBroker) -> Iterator[str]:
    """A URL at the server that all tests share, which has no stream of ours before and after the test."""
    with probing(nats) as probe:
        probe.take_down()
    yield f"{nats.url}?delivery=durable"
    with probing(nats) as probe:
        probe.take_down()


@contextlib.contextmanager
def probing(running: RunningBroker) -> Iterator[NatsProbe]:
    probe = Nats().probe(running.url, [Address.parse(running.url, TOKEN)])
    yield probe
    probe.close()


def cut_off(link: Link) -> None:
    """End a link as the death of its process does: both connections close, and nothing is said or deleted."""
    assert isinstance(link, NatsLink)
    assert isinstance(link._carrier, JetStreamCarrier)
    link._carrier._sender.close()
    link._connection.close()


def received_by(link: Link, count: int) -> list[bytes]:
    """Receive until this many frames have come."""
    batch = FrameBatch()
    serve_links_until(lambda: link.receive(batch) >= 0 and batch.count >= count, link)
    return list(batch)


def test_what_a_killed_listener_had_not_acknowledged_reaches_the_next_one_in_order(url: str) -> None:
    with joined(url) as (listener, connector):
        serve_links_until(lambda: listener.receive(FrameBatch()) == 0, listener)  # acknowledges the greeting
        assert connector.send(FrameBatch.of(b"1", b"2"), 0) == 2
        assert received_by(listener, 2) == [b"1", b"2"]
        cut_off(listener)
        assert connector.send(FrameBatch.of(b"3"), 0) == 1
        assert connector.drain(deadline_ns())
        next_one = listen(url, TOKEN)
        assert received_by(next_one, 3) == [b"1", b"2", b"3"]
        assert next_one.facts()["left_over"] >= 2
        next_one.close()
        cut_off(connector)


def test_what_was_handed_over_is_acknowledged_and_leaves_the_stream(url: str, nats: RunningBroker) -> None:
    with joined(url) as (listener, connector), probing(nats) as probe:
        for _ in range(5):
            carry(connector, listener, FrameBatch.of(*[b"frame"] * 300))
        serve_links_until(lambda: listener.receive(FrameBatch()) == 0 and probe.depth()["pair:1:in"] == 0, listener)


def test_a_second_connector_takes_nothing_from_the_first(url: str) -> None:
    with joined(url) as (listener, connector):
        second = connect(url, TOKEN, deadline_ns())
        with pytest.raises(PeerGone, match="has its one peer already"):
            serve_links_until(lambda: second.receive(FrameBatch()) > 0, second, listener)
        second.close()
        assert list(carry(listener, connector, FrameBatch.of(b"for the first"))) == [b"for the first"]


def test_a_sender_waits_for_the_stream_s_answers(url: str) -> None:
    with joined(url) as (listener, connector):
        frames = FrameBatch.of(*[b"frame"] * (3 * WINDOW))
        assert connector.send(frames, 0) == WINDOW
        first = WINDOW

        def is_sent() -> bool:
            nonlocal first
            first = connector.send(frames, first)
            return first == frames.count

        serve_links_until(is_sent, connector)
        assert connector.drain(deadline_ns())
        assert connector.facts()["confirmed"] == 3 * WINDOW + 1
        assert len(received_by(listener, 3 * WINDOW)) == 3 * WINDOW


def test_frames_that_the_peer_sent_before_it_left_come_first(url: str) -> None:
    with joined(url) as (listener, connector):
        frames = FrameBatch.of(*[b"frame"] * 900)
        assert connector.send(frames, 0) == 900
        connector.close()
        batch = FrameBatch(1000)
        with pytest.raises(PeerGone, match="has left the NATS server"):
            serve_links_until(lambda: listener.receive(batch) > 900, listener)
        assert batch.count == 900


def test_what_the_server_has_confirmed_survives_its_restart(own: RunningBroker) -> None:
    url = f"{own.url}?delivery=durable"
    assert isinstance(own.server, PrivateNats)
    assert isinstance(own.server, BreakableServer)
    with joined(url) as (listener, connector):
        assert connector.send(FrameBatch.of(b"1", b"2", b"3"), 0) == 3
        assert connector.drain(deadline_ns())
        own.server.restart()
        for end in (listener, connector):
            with pytest.raises(PeerGone, match=r"the NATS server at .* went away"):
                serve_links_until(lambda end=end: end.wait(time.monotonic_ns()) or end.receive(FrameBatch()) < 0)
    next_one = listen(url, TOKEN)
    assert received_by(next_one, 3)[-3:] == [b"1", b"2", b"3"]
    next_one.close()


def test_closed_connections_are_noticed_at_both_ends(own: RunningBroker) -> None:
    assert isinstance(own.server, PrivateNats)
    with joined(own.url) as ends:
        own.server.close_connections()
        for end in ends:
            with pytest.raises(PeerGone, match=r"the NATS server at .* went away: Authorization Violation") as gone:
                serve_links_until(lambda end=end: end.wait(time.monotonic_ns()) or end.receive(FrameBatch()) < 0)
            assert "Slow Consumer" not in str(gone.value)
    with joined(own.url) as (listener, connector):  # the server takes clients again
        greet(connector, listener)


def test_a_stream_that_somebody_deleted_ends_the_sender(url: str, nats: RunningBroker) -> None:
    with joined(url) as (_, connector), probing(nats) as probe:
        probe.take_down()
        assert connector.send(FrameBatch.of(b"to nowhere"), 0) == 1
        with pytest.raises(PeerGone, match="was deleted"):
            serve_links_until(lambda: connector.receive(FrameBatch()) > 0, connector)


def test_a_server_without_jetstream_is_refused_in_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("transports.nats.server.JETSTREAM", "")
    with Nats().start(tmp_path / "server", None, nodelay=True, where=ServerPlace()) as running:
        monkeypatch.setenv(PASSWORD, running.environment[PASSWORD])
        with pytest.raises(BadAddress, match="has no JetStream, which delivery=durable needs: start it with"):
            listen(f"{running.url}?delivery=durable", TOKEN)
        with joined(running.url), probing(running) as probe:
            assert probe.depth() == {}


def sentence_of_failed_look(probe: NatsProbe) -> str:
    """Return why the server did not say how deep the queues are; empty if it did."""
    try:
        probe.depth()
    except BadAddress as error:
        return str(error)
    return ""


def test_an_answer_that_came_too_late_is_not_taken_for_the_next_question_s(
    own: RunningBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert isinstance(own.server, PrivateNats)
    server = psutil.Process(own.server.pid)
    with joined(f"{own.url}?delivery=durable") as (_, connector), probing(own) as probe:
        assert connector.send(FrameBatch.of(b"1", b"2", b"3"), 0) == 3
        assert connector.drain(deadline_ns())
        server.suspend()
        with monkeypatch.context() as patience:
            patience.setattr(connection, "ANSWER_S", 0.05)
            until(lambda: sentence_of_failed_look(probe), "a look without an answer")  # threads stop one by one
            assert "sent no answer within 0.05 s" in sentence_of_failed_look(probe)
        server.resume()
        assert max(probe.depth().values()) >= 3


def test_durable_requests_are_refused_with_the_reason(nats: RunningBroker) -> None:
    url = f"{nats.url}?delivery=durable"
    with pytest.raises(BadAddress, match=r"nats has no pattern 'requests'; a stream .* takes the place of the asker"):
        listen(url, TOKEN, Pattern.REQUESTS)


def test_what_a_killed_consumer_had_taken_comes_to_another_one(
    url: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(jetstream, "REDELIVER_TO_GROUP_NS", 1_000_000_000)
    killed = listen(url, TOKEN, Pattern.QUEUE)
    publisher = connect(url, TOKEN, deadline_ns(), Pattern.QUEUE)
    assert publisher.send(FrameBatch.of(b"1", b"2", b"3"), 0) == 3
    assert received_by(killed, 3) == [b"1", b"2", b"3"]
    cut_off(killed)
    another = listen(url, TOKEN, Pattern.QUEUE)
    assert received_by(another, 3) == [b"1", b"2", b"3"]
    another.close()
    publisher.close()


def test_messages_that_were_handled_leave_the_stream(url: str, nats: RunningBroker) -> None:
    with probing(nats) as probe:
        consumer = listen(url, TOKEN, Pattern.QUEUE)
        publisher = connect(url, TOKEN, deadline_ns(), Pattern.QUEUE)
        assert publisher.send(FrameBatch.of(*[b"frame"] * MESSAGES), 0) == MESSAGES
        assert len(received_by(consumer, MESSAGES)) == MESSAGES
        assert probe.depth()["queue:1:queue"] > 0
        serve_links_until(lambda: consumer.receive(FrameBatch()) == 0 and probe.depth()["queue:1:queue"] == 0, consumer)
        consumer.close()
        publisher.close()


def test_a_message_that_is_too_long_for_its_consumer_leaves_the_queue_and_is_counted(
    url: str, nats: RunningBroker
) -> None:
    with probing(nats) as probe:
        consumer = listen(url, TOKEN, Pattern.QUEUE)
        publisher = connect(url, TOKEN, deadline_ns(), Pattern.QUEUE)
        long = b"x" * 101
        assert publisher.send(FrameBatch.of(b"first", long, long, b"last"), 0) == 4
        batch = FrameBatch(capacity_frames=10, capacity_bytes=1000, largest_frame=100)
        serve_links_until(lambda: consumer.receive(batch) >= 0 and batch.count == 2, consumer)
        assert list(batch) == [b"first", b"last"]
        serve_links_until(lambda: consumer.receive(batch) == 0 and probe.depth()["queue:1:queue"] == 0, consumer)
        assert consumer.junk == 2
        assert consumer.facts()["ended_too_long"] == 2
        consumer.close()
        publisher.close()


def test_messages_wait_for_the_next_consumer_once_all_have_left(url: str) -> None:
    first = listen(url, TOKEN, Pattern.QUEUE)
    publisher = connect(url, TOKEN, deadline_ns(), Pattern.QUEUE)
    first.close()
    assert publisher.send(FrameBatch.of(b"kept"), 0) == 1
    assert publisher.drain(deadline_ns())
    second = listen(url, TOKEN, Pattern.QUEUE)
    assert received_by(second, 1) == [b"kept"]
    second.close()
    publisher.close()


def test_a_probe_of_another_run_sees_no_stream_of_this_one(url: str, nats: RunningBroker) -> None:
    consumer = listen(url, TOKEN, Pattern.QUEUE)
    probe = Nats().probe(nats.url, [Address.parse(nats.url, "another-run")])
    assert probe.depth() == {}
    probe.close()
    consumer.close()
