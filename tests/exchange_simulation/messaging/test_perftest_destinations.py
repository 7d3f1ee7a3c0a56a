"""The destinations of perftest: the roles at each, their keys, and how messages are counted."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from exchange_simulation.launching.errors import UserError
from exchange_simulation.messaging.benchmarks import benchmark_of
from exchange_simulation.messaging.benchmarks.perftest import Destination, Shape, destinations_of, figures, points
from exchange_simulation.messaging.cell import Cell
from exchange_simulation.messaging.flow import ConsumeShared
from exchange_simulation.messaging.options import settings_from_words
from exchange_simulation.messaging.point import Settings
from exchange_simulation.messaging.roles import LinkEnd, Links, Role, RoleResult
from exchange_simulation.messaging.streams import LEAST_SPAN_NS
from transports.base import Address, Pattern
from transports.frames import FrameBatch
from transports.topics import matches


def unopened_links(transport: str) -> Links:
    """Links with ports from 7000 on that nobody reserves."""
    ports = itertools.count(7000)
    return Links(transport, "run", Path(), lambda _kind, _path, _host: f"127.0.0.1:{next(ports)}")


def first_ends(destination: Destination, kind: str, transport: str = "amqp://host") -> list[LinkEnd]:
    """The first end of each role of a kind."""
    roles = destination.roles(unopened_links(transport), 0.0)
    return [role.ends[0] for role in roles if role.name.startswith(kind)]


def topic(number: int) -> Destination:
    """A topic with three publishers and two subscribers."""
    return Destination(number, Pattern.TOPIC, 64, 10, Shape(3, 2))


def keys_of_publishers(destination: Destination) -> list[str]:
    keys = []
    for end in first_ends(destination, "publisher"):
        keys += end.keys
    return keys


def patterns_of_subscribers(destination: Destination) -> list[str]:
    patterns = []
    for end in first_ends(destination, "subscriber"):
        patterns += end.keys
    return patterns


def test_each_publisher_of_a_topic_has_a_key() -> None:
    assert keys_of_publishers(topic(1)) == ["perf.q1.p1", "perf.q1.p2", "perf.q1.p3"]


@pytest.mark.parametrize("key", keys_of_publishers(topic(1)))
def test_a_publisher_s_key_matches_only_patterns_of_its_topic(key: str) -> None:
    for pattern in patterns_of_subscribers(topic(1)):
        assert matches(pattern, key)
    for pattern in patterns_of_subscribers(topic(11)):
        assert not matches(pattern, key)


def test_without_a_broker_a_subscriber_connects_to_every_publisher() -> None:
    roles = Destination(1, Pattern.FANOUT, 64, 10, Shape(3, 2)).roles(unopened_links("zeromq"), 0.0)
    addresses = {role.name: Address.parse(role.ends[0].url, "run") for role in roles}
    publishers = [addresses[f"publisher 1.{number}"] for number in (1, 2, 3)]
    for name in ("subscriber 1.1", "subscriber 1.2"):
        assert addresses[name].place == ",".join(publisher.place for publisher in publishers)
        assert addresses[name].options["back"] == ",".join(publisher.options["back"] for publisher in publishers)
        assert addresses[name].options["hwm"] == publishers[0].options["hwm"]


@pytest.mark.parametrize(
    ("pattern", "total"), [(Pattern.QUEUE, 3 * 10), (Pattern.FANOUT, 3 * 10 * 2), (Pattern.TOPIC, 3 * 10 * 2)]
)
def test_a_queue_delivers_a_message_once_and_an_exchange_to_all(pattern: Pattern, total: int) -> None:
    roles = Destination(1, pattern, 64, 10, Shape(3, 2)).roles(unopened_links("amqp://host"), 0.0)
    assert {role.shares.total for role in roles if role.shares} == {total}


def test_a_subscriber_of_an_exchange_may_miss_no_message() -> None:
    results = {
        "publisher 1.1": RoleResult(sent=10),
        "subscriber 1.1": RoleResult(received=10),
        "subscriber 1.2": RoleResult(received=9, wrong={"left out": 1}),
    }
    assert Destination(1, Pattern.FANOUT, 64, 10, Shape(1, 2)).problems(results) == [
        "exchange 1: the subscriber 1.2 received 9 messages instead of 10",
        "exchange 1: subscriber 1.2: 1 messages left out",
    ]


def test_a_subscriber_of_a_queue_may_miss_messages_of_others() -> None:
    results = {
        "publisher 1.1": RoleResult(sent=10),
        "subscriber 1.1": RoleResult(received=6, wrong={"left out": 4}),
        "subscriber 1.2": RoleResult(received=4, wrong={"left out": 6}),
    }
    assert Destination(1, Pattern.QUEUE, 64, 10, Shape(1, 2)).problems(results) == []


class QueueInMemory:
    """A link to a queue in memory that takes two messages a call; and a session with this link twice."""

    junk = 0
    clock_ahead_ns = 0
    url = "memory"

    def __init__(self, stop_at: int) -> None:
        self.queue: list[bytes] = []
        self.links = [self, self]
        self._stop_at = stop_at
        self._received = 0

    def send(self, batch: FrameBatch, first: int) -> int:
        end = min(first + 2, batch.count)
        self.queue += [bytes(batch[frame]) for frame in range(first, end)]
        return end

    def receive(self, batch: FrameBatch) -> int:
        frames = self.queue[:3]
        self.queue = self.queue[3:]
        for frame in frames:
            batch.append(frame)
        self._received += len(frames)
        return len(frames)

    def drain(self, _until_ns: int) -> bool:
        return True

    def serve(self, _link: object) -> None: ...

    def report_progress(self, _received: int) -> None: ...

    @property
    def must_stop(self) -> bool:
        return self._received >= self._stop_at


def test_a_client_publishes_and_subscribes_at_once() -> None:
    result = ConsumeShared(64, 1, 0.0, count=7)(QueueInMemory(7))  # type: ignore[arg-type]
    assert result.sent == 7
    assert result.received == 7
    assert result.wrong == {}
    assert result.sent_checksum == result.received_checksum
    assert result.first_ns <= result.details["published_ns"]


def test_a_client_sees_at_once_that_all_it_published_was_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Regression: a client looked every 100 ms, which made the time of publishing too long."""
    queue = QueueInMemory(7)
    waiting_at_drain: list[int] = []

    def drain(_until_ns: int) -> bool:
        waiting_at_drain.append(len(queue.queue))
        return True

    monkeypatch.setattr(queue, "drain", drain)
    ConsumeShared(64, 1, 0.0, count=7)(queue)  # type: ignore[arg-type]
    assert waiting_at_drain == [1], "the last message was not received yet"


class UnservedQueue(QueueInMemory):
    """A link that takes no message before it was served, as a ZeroMQ listener whose peers are not connected yet."""

    is_served = False

    def serve(self, _link: object) -> None:
        self.is_served = True

    def send(self, batch: FrameBatch, first: int) -> int:
        if not self.is_served:
            return first
        return super().send(batch, first)


class Clock:
    """A clock that moves by a microsecond at each reading, and by the length of each sleep."""

    now_ns = 0

    def monotonic_ns(self) -> int:
        self.now_ns += 1_000
        return self.now_ns

    def sleep(self, seconds: float) -> None:
        self.now_ns += int(seconds * 1e9)


def test_a_subscriber_serves_its_links_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Regression: without a broker, links were first served after 100 ms, four fifths of a quick perftest."""
    monkeypatch.setattr("exchange_simulation.messaging.flow.time", Clock())
    result = ConsumeShared(64, 1, 0.06, count=7)(UnservedQueue(7))  # type: ignore[arg-type]
    assert result.last_ns - result.first_ns < 10_000_000


def test_publishing_ends_at_the_last_delivery_at_the_latest() -> None:
    client = RoleResult(sent=100, received=100, first_ns=0, last_ns=10**9, details={"published_ns": 10**9 + 10**8})
    cell = Cell("amqp", {"size_bytes": 64, "queues": 1}, {"mode": "shared", "queues": 1, "clients": 1})
    assert figures(cell, {"client 1.1": client})["publishes_per_s"] == 100.0


def test_a_rate_of_less_than_ten_milliseconds_is_left_out() -> None:
    cell = Cell("amqp", {"size_bytes": 64, "queues": 1}, {"mode": "shared", "queues": 1, "clients": 1, "packing": 2})
    client = RoleResult(sent=100, received=100, last_ns=LEAST_SPAN_NS, details={"published_ns": LEAST_SPAN_NS - 1})
    measured = figures(cell, {"client 1.1": client})
    assert measured["transfers_per_s"] == 20_000.0
    assert measured["packed_out_per_s"] == 20_000.0
    assert measured.keys().isdisjoint({"publishes_per_s", "published_megabytes_per_s", "packed_in_per_s"})
    client.last_ns -= 1
    assert figures(cell, {"client 1.1": client}) == {"transfers": 200}


SETTINGS = {"queues": 10, "size": 256, "count": None, "mode": "shared"}


def cell_of(settings: Settings) -> Cell:
    return Cell("amqp", {"size_bytes": settings["size"]}, settings)


def test_the_defaults_are_the_paper_s_60_clients_and_transfers() -> None:
    roles: list[Role] = []
    transfers = 0
    for destination in destinations_of(cell_of(SETTINGS)):
        roles += destination.roles(unopened_links("amqp://host"), 0.0)
        transfers += destination.published + destination.delivered
    assert len(roles) == 60
    for role in roles:
        assert role.name.startswith("client")
        assert len(role.ends) == 2, "a client publishes and subscribes"
    assert transfers == 12_000_240


@pytest.mark.parametrize(
    ("words", "clients"), [("--quick", 4), ("--quick --qt 3", 6), ("--quick --qt 3 --clients 9", 9)]
)
def test_a_quick_perftest_has_two_clients_on_each_queue(words: str, clients: int) -> None:
    """Regression: with three queues, the default of four clients was refused."""
    perftest = benchmark_of("perftest")
    settings, _ = settings_from_words(perftest, words.split())
    assert sum(destination.shape.publishers for destination in destinations_of(cell_of(settings))) == clients
    assert perftest.points(settings)


def test_an_older_record_has_publishers_and_subscribers() -> None:
    shape = Shape.of({**SETTINGS, "npubs": 3, "nsubs": 2})
    assert shape == Shape(3, 2, publish_and_subscribe=False)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"clients": 61}, "--clients is 61: give a multiple of --qt, which is 10"),
        ({"clients": 5}, "--clients is 5"),
        ({"clients": 60, "npubs": 2}, "leave out --npubs"),
        ({"clients": 60, "mode": "fanout"}, "leave out --npubs, --nsubs, --mode"),
        ({"packing": 257}, "--packing is 257: 256 bytes have no room"),
    ],
)
def test_impossible_clients_and_sizes_are_refused(given: dict[str, object], message: str) -> None:
    with pytest.raises(UserError, match=message):
        points({**SETTINGS, **given})
