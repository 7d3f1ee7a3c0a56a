"""Fanout and topics: every subscriber gets every message, also at the start and if a subscriber is slow."""

from __future__ import annotations

import contextlib
import time
from dataclasses import replace
from pathlib import Path

import pytest

from exchange.unique import unique
from exchange_simulation.messaging.session import await_subscribers
from tests.transports.conftest import TOKEN, carry, deadline_ns, placed, publishing, serve_links_until, urls_with
from transports.base import Address, BadAddress, Link, Pattern, PeerGone, TransportError
from transports.frames import LONGEST_FRAME, FrameBatch
from transports.registry import connect, listen, transport_of
from transports.topics import matches, prefixes

FEW = 300
"""More messages than a link acknowledges together."""
MANY = 1500
"""With 10 kB each, more messages than fit into all buffers between a publisher and a subscriber."""
KEY = "news.usa.sport"


@pytest.fixture(params=urls_with(Pattern.FANOUT))
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return placed(request, tmp_path)


def skip_without(url: str, pattern: Pattern) -> None:
    """Skip the test if addresses like this one lack the pattern."""
    address = Address.parse(url, TOKEN)
    reason = transport_of(address.scheme).why_lacks(pattern, address.options)
    if reason:
        pytest.skip(reason)


def numbered(count: int) -> list[bytes]:
    """Return numbered frames of three sizes."""
    return [number.to_bytes(4, "big") * (1 + number % 3) for number in range(count)]


def spread(publisher: Link, subscribers: list[Link], frames: list[bytes], largest: int = 1 << 17) -> list[FrameBatch]:
    """Publish the frames and serve all links until every subscriber has as many. Returns the subscribers' batches."""
    outgoing = FrameBatch.of(*frames)
    sent = 0
    room = outgoing.used_bytes + largest
    batches = [FrameBatch(len(frames) + 1, room, largest) for _ in subscribers]

    def have_all() -> bool:
        nonlocal sent
        if sent < outgoing.count:
            sent = publisher.send(outgoing, sent)
        for link, batch in zip(subscribers, batches, strict=True):
            link.receive(batch)
        return all(batch.count >= outgoing.count for batch in batches)

    serve_links_until(have_all, publisher, *subscribers)
    return batches


def test_every_subscriber_gets_all_messages_in_order(url: str) -> None:
    with publishing(url, Pattern.FANOUT, (), (), (), ()) as (publisher, subscribers):
        for batch in spread(publisher, subscribers, numbered(FEW)):
            assert list(batch) == numbered(FEW)


@pytest.mark.parametrize("pattern", [Pattern.FANOUT, Pattern.TOPIC])
def test_every_subscriber_gets_all_messages_of_two_publishers(pattern: Pattern, url: str) -> None:
    skip_without(url, pattern)
    with contextlib.ExitStack() as closing:
        first_publisher = listen(distinct(url, 0), TOKEN, pattern, ("news.p0",))
        second_publisher = listen(distinct(url, 1), TOKEN, pattern, ("news.p1",))
        both_places = all_places([first_publisher.url, second_publisher.url])
        subscribers = [connect(both_places, TOKEN, deadline_ns(), pattern, ("news.#",)) for _ in range(2)]
        for link in (*subscribers, first_publisher, second_publisher):
            closing.callback(link.close)
        for publisher, count in ((first_publisher, 20), (second_publisher, 21)):
            await_subscribers(publisher, len(subscribers), deadline_ns())
            for batch in spread(publisher, subscribers, numbered(count)):
                assert list(batch) == numbered(count)


def distinct(url: str, number: int) -> str:
    """Return the address for the publisher of this number: all share a broker, else each has its own place."""
    is_shared_or_any_port = "@" in url or "127.0.0.1" in url  # with port 0 the system chooses different ports
    if is_shared_or_any_port:
        return url
    base, question_mark, query = url.partition("?")
    return f"{base}{number}{question_mark}{query}"


def all_places(urls: list[str]) -> str:
    """Return one address with the places of all these addresses."""
    addresses = [Address.parse(url, TOKEN) for url in urls]
    first = addresses[0]
    options = dict(first.options)
    ports_back = [address.options["back"] for address in addresses if "back" in address.options]
    if ports_back:
        options["back"] = ",".join(ports_back)
    places = unique(address.place for address in addresses)
    return replace(first, place=",".join(places), options=options).url


def test_the_back_option_takes_a_port_for_each_publisher() -> None:
    with pytest.raises(BadAddress, match="back is '3'; it takes a port for each of 2 places"):
        connect("zeromq://127.0.0.1:1,127.0.0.1:2?back=3", TOKEN, deadline_ns(), Pattern.FANOUT)


def test_the_publisher_receives_from_every_subscriber(url: str) -> None:
    with publishing(url, Pattern.FANOUT, (), (), ()) as (publisher, subscribers):
        received = FrameBatch()
        for number, link in enumerate(subscribers):
            assert link.send(FrameBatch.of(b"from %d" % number), 0) == 1
        serve_links_until(lambda: publisher.receive(received) >= 0 and received.count == 2, publisher, *subscribers)
        assert sorted(received) == [b"from 0", b"from 1"]


def test_only_subscribers_of_a_matching_key_get_a_message(url: str) -> None:
    skip_without(url, Pattern.TOPIC)
    matching = [("news.usa.#",), ("other.#", "news.usa.sport")]
    not_matching = [("news.usa",), ("news.usa.sports",)]
    with publishing(url, Pattern.TOPIC, (KEY,), *matching, *not_matching) as (publisher, subscribers):
        for batch in spread(publisher, subscribers[:2], numbered(FEW)):
            assert list(batch) == numbered(FEW)
        for subscriber in subscribers[2:]:
            assert subscriber.receive(FrameBatch()) == 0


def test_a_subscriber_with_many_patterns_gets_each_message_once(url: str) -> None:
    skip_without(url, Pattern.TOPIC)
    patterns = tuple(f"quotes.q{number}.#" for number in range(12))
    with publishing(url, Pattern.TOPIC, ("quotes.q7.now",), patterns) as (publisher, subscribers):
        [batch] = spread(publisher, subscribers, numbered(FEW))
        assert list(batch) == numbered(FEW)


@pytest.mark.parametrize("pattern", [Pattern.FANOUT, Pattern.TOPIC])
def test_the_longest_frame_arrives_and_one_longer_than_the_batch_does_not(pattern: Pattern, url: str) -> None:
    skip_without(url, pattern)
    frame = bytes(range(256)) * (LONGEST_FRAME // 256)
    with publishing(url, pattern, (KEY,), ("#",)) as (publisher, subscribers):
        [batch] = spread(publisher, subscribers, [frame, b"", frame], LONGEST_FRAME)
        assert list(batch) == [frame, b"", frame]
        assert publisher.send(FrameBatch.of(bytes(5000)), 0) == 1
        small = FrameBatch(10, 4096, 1000)
        serve_links_until(
            lambda: subscribers[0].receive(small) > 0 or subscribers[0].junk == 1, publisher, *subscribers
        )
        assert small.count == 0


def test_a_slow_subscriber_stops_the_publisher_and_loses_no_message(tmp_path: Path) -> None:
    url = f"zeromq+ipc://{tmp_path}/link?hwm=10"
    with publishing(url, Pattern.FANOUT, (), (), ()) as (publisher, (quick, slow)):
        outgoing = FrameBatch.of(*[bytes(10_000)] * MANY)
        room = MANY * 10_000 + (1 << 17)
        received_by_quick = FrameBatch(MANY + 1, room)
        received_by_slow = FrameBatch(MANY + 1, room)

        sent = 0
        end_ns = time.monotonic_ns() + 200_000_000
        while time.monotonic_ns() < end_ns:  # until the publisher has sent nothing for 0.2 s
            sent_before = sent
            sent = publisher.send(outgoing, sent)
            quick.receive(received_by_quick)
            if sent > sent_before:
                end_ns = time.monotonic_ns() + 200_000_000
        assert sent < MANY, "the publisher does not stop for the slow subscriber"

        calls = 0
        end_ns = time.monotonic_ns() + 50_000_000
        while time.monotonic_ns() < end_ns:
            sent = publisher.send(outgoing, sent)
            publisher.wait(end_ns, readable=False, writable=True)
            calls += 1
        assert calls < 50, "the publisher does not sleep while it waits for room"

        def have_all() -> bool:
            nonlocal sent
            if sent < MANY:
                sent = publisher.send(outgoing, sent)
            quick.receive(received_by_quick)
            slow.receive(received_by_slow)
            return received_by_quick.count == MANY and received_by_slow.count == MANY

        serve_links_until(have_all, publisher, quick, slow)


def test_other_subscribers_go_on_after_one_has_left(url: str) -> None:
    with publishing(url, Pattern.FANOUT, (), (), ()) as (publisher, subscribers):
        spread(publisher, subscribers, numbered(10))
        subscribers[0].close()
        assert list(carry(publisher, subscribers[1], FrameBatch.of(*numbered(FEW)))) == numbered(FEW)


def test_publishers_and_subscribers_without_work_sleep(url: str) -> None:
    with publishing(url, Pattern.FANOUT, (), ()) as (publisher, subscribers):
        for link in (*subscribers, publisher):
            end_ns = time.monotonic_ns() + 50_000_000
            calls = 0
            while time.monotonic_ns() < end_ns:
                link.wait(end_ns)
                calls += 1
            assert calls < 50


def test_missing_subscribers_are_an_error_with_their_number() -> None:
    link = listen("zeromq://127.0.0.1:0", TOKEN, Pattern.FANOUT)
    with pytest.raises(PeerGone, match="0 of 2 subscribers came"):
        await_subscribers(link, 2, deadline_ns(0.01))
    link.close()


@pytest.mark.parametrize("client", ["compiled", "pika"])
def test_a_key_without_a_subscriber_is_an_error(client: str, broker_place: str) -> None:
    with publishing(f"amqp://{broker_place}?client={client}", Pattern.TOPIC, (KEY,), ("news.*",)) as (publisher, _):
        assert publisher.send(FrameBatch.of(b"x"), 0) == 1
        with pytest.raises(TransportError, match=r"no queue takes messages of the key 'news\.usa\.sport'"):
            serve_links_until(lambda: publisher.receive(FrameBatch()) > 0, publisher)


def test_zeromq_refuses_a_pattern_that_is_no_prefix() -> None:
    for pattern in ("news.*", "*.usa", "#.usa", "news.#.usa"):
        with pytest.raises(BadAddress, match="ZeroMQ matches prefixes"):
            connect("zeromq://127.0.0.1:1", TOKEN, deadline_ns(), Pattern.TOPIC, (pattern,))
    with pytest.raises(BadAddress, match="at most 255 bytes"):
        listen("zeromq://127.0.0.1:0", TOKEN, Pattern.TOPIC, ("k" * 256,))


@pytest.mark.parametrize(
    ("pattern", "matching", "not_matching"),
    [
        ("a.b", ("a.b",), ("a", "a.bc", "a.b.c")),
        ("a.*", ("a.b",), ("a", "a.b.c")),
        ("a.#", ("a", "a.b", "a.b.c"), ("ab", "b.a")),
        ("#", ("", "a", "a.b"), ()),
        ("#.b.*", ("b.c", "a.b.c", "a.a.b.c"), ("a.b", "b.c.d")),
    ],
)
def test_patterns_match_keys_as_in_amqp(pattern: str, matching: tuple[str, ...], not_matching: tuple[str, ...]) -> None:
    for key in matching:
        assert matches(pattern, key)
    for key in not_matching:
        assert not matches(pattern, key)


@pytest.mark.parametrize("pattern", ["a.b", "a.#", "#"])
def test_the_prefixes_of_a_pattern_match_the_same_keys(pattern: str) -> None:
    for key in ("a", "a.b", "a.bc", "a.b.c", "ab", "b", "a.b.#"):
        message = key.encode() + b"\0" + b"frame"
        is_prefix_matching = any(message.startswith(prefix) for prefix in prefixes(pattern))
        assert is_prefix_matching is matches(pattern, key)
