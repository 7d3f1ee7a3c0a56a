"""Roles of perftest meet at the right destination, with the right keys."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from exchange_simulation.launching.errors import UserError
from exchange_simulation.messaging.benchmarks import benchmark_of
from exchange_simulation.messaging.benchmarks.perftest import Destination, Shape, destinations_of, figures, points
from exchange_simulation.messaging.cell import Cell
from exchange_simulation.messaging.flow import ConsumeShared
from exchange_simulation.messaging.options import settings_in_words
from exchange_simulation.messaging.roles import LinkEnd, Links, RoleResult
from exchange_simulation.messaging.streams import LEAST_SPAN_NS
from transports.base import Address, Pattern
from transports.frames import FrameBatch
from transports.topics import matches


def imagined(transport: str) -> Links:
    """Ports that nobody reserves."""
    ports = itertools.count(7000)
    return Links(transport, "run", Path(), lambda _kind, _path, _host: f"127.0.0.1:{next(ports)}")


def ends(destination: Destination, kind: str, transport: str = "amqp://host") -> list[LinkEnd]:
    roles = destination.roles(imagined(transport), 0.0)
    return [role.ends[0] for role in roles if role.name.startswith(kind)]


def test_keys_of_a_topic_s_publishers_match_its_patterns_only() -> None:
    """Each publisher has a key of its own; every pattern of the topic matches it, and no pattern of another topic."""
    here, there = (Destination(number, Pattern.TOPIC, 64, 10, Shape(3, 2)) for number in (1, 11))
    keys = [end.keys[0] for end in ends(here, "publisher")]
    assert keys == ["perf.q1.p1", "perf.q1.p2", "perf.q1.p3"]
    assert all(matches(pattern, key) for end in ends(here, "subscriber") for pattern in end.keys for key in keys)
    assert not any(matches(pattern, key) for end in ends(there, "subscriber") for pattern in end.keys for key in keys)


def test_without_a_broker_a_subscriber_connects_to_every_publisher() -> None:
    """The publishers are those of its exchange."""
    destination = Destination(1, Pattern.FANOUT, 64, 10, Shape(3, 2))
    *subscribers, one, two, three = destination.roles(imagined("zeromq"), 0.0)
    places = [Address.parse(publisher.ends[0].url, "run") for publisher in (one, two, three)]
    for subscriber in subscribers:
        there = Address.parse(subscriber.ends[0].url, "run")
        assert there.place == ",".join(address.place for address in places)
        assert there.options["back"] == ",".join(address.options["back"] for address in places)
        assert there.options["hwm"] == places[0].options["hwm"]


def test_all_is_delivered_to_each_subscriber_or_once_to_a_queue() -> None:
    """Every subscriber of an exchange has all messages; those of a queue have them together."""
    for pattern, total in ((Pattern.QUEUE, 3 * 10), (Pattern.FANOUT, 3 * 10 * 2), (Pattern.TOPIC, 3 * 10 * 2)):
        roles = Destination(1, pattern, 64, 10, Shape(3, 2)).roles(imagined("amqp://host"), 0.0)
        assert {role.shares.total for role in roles if role.shares} == {total}


def test_a_subscriber_of_an_exchange_may_miss_no_message() -> None:
    """One of a queue may miss what others get."""

    def told(received: int, left_out: int) -> RoleResult:
        return RoleResult(received=received, wrong={"left out": left_out} if left_out else {})

    roles = {"publisher 1.1": RoleResult(sent=10), "subscriber 1.1": told(10, 0), "subscriber 1.2": told(9, 1)}
    assert Destination(1, Pattern.FANOUT, 64, 10, Shape(1, 2)).problems(roles) == [
        "exchange 1: the subscriber 1.2 received 9 messages instead of 10",
        "exchange 1: subscriber 1.2: 1 messages left out",
    ]
    dealt = roles | {"subscriber 1.1": told(6, 4), "subscriber 1.2": told(4, 6)}
    assert Destination(1, Pattern.QUEUE, 64, 10, Shape(1, 2)).problems(dealt) == []


class Together:
    """A link that publishes into a queue in memory, and takes two messages a call; and a session of two of them."""

    def __init__(self, stop_at: int) -> None:
        self.queue: list[bytes] = []
        self.links, self._stop_at, self._received = [self, self], stop_at, 0
        self.junk = 0
        self.url = "memory"

    def send(self, batch: FrameBatch, first: int) -> int:
        end = min(first + 2, batch.count)
        self.queue += [bytes(batch[frame]) for frame in range(first, end)]
        return end

    def receive(self, batch: FrameBatch) -> int:
        came, self.queue = self.queue[:3], self.queue[3:]
        for frame in came:
            batch.append(frame)
        self._received += len(came)
        return len(came)

    def drain(self, _until_ns: int) -> bool:
        return True

    def serve(self, _link: object) -> None: ...

    def report_progress(self, _received: int) -> None: ...

    @property
    def must_stop(self) -> bool:
        return self._received >= self._stop_at


def test_a_client_publishes_and_subscribes_at_once() -> None:
    result = ConsumeShared(64, 1, 0.0, count=7)(Together(7))  # type: ignore[arg-type]
    assert (result.sent, result.received, result.wrong) == (7, 7, {})
    assert result.sent_checksum == result.received_checksum
    assert result.first_ns <= result.details["published_ns"]


def test_a_client_sees_at_once_that_all_it_published_was_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """It looked every 100 ms: 40,000 messages that were delivered within 0.32 s were published within 0.41 s."""
    looks: list[int] = []
    both = Together(7)
    monkeypatch.setattr(both, "drain", lambda _until_ns: looks.append(len(both.queue)) or True)
    ConsumeShared(64, 1, 0.0, count=7)(both)  # type: ignore[arg-type]
    assert looks == [1], "the last message, which nobody has received yet"


class Shy(Together):
    """A link over which nothing goes until it has been served, as a ZeroMQ listener whose peers wait to be let in."""

    is_served = False

    def serve(self, _link: object) -> None:
        self.is_served = True

    def send(self, batch: FrameBatch, first: int) -> int:
        return super().send(batch, first) if self.is_served else first


class Clock:
    """A clock that each look moves by a microsecond, and each sleep by its length."""

    now_ns = 0

    def monotonic_ns(self) -> int:
        self.now_ns += 1_000
        return self.now_ns

    def sleep(self, seconds: float) -> None:
        self.now_ns += int(seconds * 1e9)


def test_a_subscriber_lets_its_peers_in_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a broker it first did so after 100 ms, which were four fifths of a quick perftest."""
    monkeypatch.setattr("exchange_simulation.messaging.flow.time", Clock())
    result = ConsumeShared(64, 1, 0.06, count=7)(Shy(7))  # type: ignore[arg-type]
    assert result.last_ns - result.first_ns < 10_000_000


def test_what_was_delivered_was_published_before() -> None:
    client = RoleResult(sent=100, received=100, first_ns=0, last_ns=10**9, details={"published_ns": 10**9 + 10**8})
    cell = Cell("amqp", {"size_bytes": 64, "queues": 1}, {"mode": "shared", "queues": 1, "clients": 1})
    assert figures(cell, {"client 1.1": client})["publishes_per_s"] == 100.0


def test_a_rate_of_less_than_ten_milliseconds_is_left_out() -> None:
    cell = Cell("amqp", {"size_bytes": 64, "queues": 1}, {"mode": "shared", "queues": 1, "clients": 1, "packing": 2})
    client = RoleResult(sent=100, received=100, last_ns=LEAST_SPAN_NS, details={"published_ns": LEAST_SPAN_NS - 1})
    found = figures(cell, {"client 1.1": client})
    assert (found["transfers_per_s"], found["packed_out_per_s"]) == (20_000.0, 20_000.0)
    assert found.keys().isdisjoint({"publishes_per_s", "published_megabytes_per_s", "packed_in_per_s"})
    client.last_ns -= 1
    assert figures(cell, {"client 1.1": client}) == {"transfers": 200}


SETTINGS = {"queues": 10, "size": 256, "count": 100_000, "mode": "shared"}


def test_the_default_is_the_papers_60_clients_that_do_both_and_its_total() -> None:
    destinations = destinations_of(SETTINGS)
    roles = [role for each in destinations for role in each.roles(imagined("amqp://host"), 0.0)]
    assert len(roles) == 60
    assert {role.name.partition(" ")[0] for role in roles} == {"client"}
    assert {len(role.ends) for role in roles} == {2}
    assert sum(each.published + each.delivered for each in destinations) == 12_000_240


def test_a_quick_perftest_has_two_clients_on_each_queue() -> None:
    """With three queues it refused the four clients that it had chosen itself."""
    perftest = benchmark_of("perftest")
    for words, roles in (("--quick", 4), ("--quick --qt 3", 6), ("--quick --qt 3 --clients 9", 9)):
        settings, _ = settings_in_words(perftest, words.split())
        assert sum(each.shape.publishers for each in destinations_of(settings)) == roles
        assert perftest.points(settings)


def test_an_older_record_has_publishers_and_subscribers() -> None:
    shape = Shape.of({**SETTINGS, "npubs": 3, "nsubs": 2})
    assert shape == Shape(3, 2, publish_and_subscribe=False)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"clients": 61}, "--clients is 61: give a multiple of --qt, which is 10"),
        ({"clients": 5}, "--clients is 5"),
        ({"clients": 60, "npubs": 2}, "leave out --npubs"),
        ({"clients": 60, "mode": "fanout"}, "leave out --npubs, --nsubs, --mode"),
        ({"packing": 257}, "--packing is 257: 256 bytes have no room"),
    ],
)
def test_what_cannot_be_is_a_sentence(given: dict[str, object], told: str) -> None:
    with pytest.raises(UserError, match=told):
        points({**SETTINGS, **given})
