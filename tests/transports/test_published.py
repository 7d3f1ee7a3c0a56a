"""Messages published once for many: fanout and topics. None is lost at the start, or to a slow subscriber."""

from __future__ import annotations

import contextlib
import time
from dataclasses import replace
from pathlib import Path

import pytest

from exchange_simulation.messaging.session import await_subscribers
from tests.transports.conftest import TOKEN, carry, deadline_ns, placed, publishing, until, urls_with
from transports.base import Address, BadAddress, Link, Pattern, PeerGone, TransportError
from transports.frames import LONGEST_FRAME, FrameBatch
from transports.registry import connect, listen
from transports.topics import matches, prefixes

FEW, MANY = 300, 1500
"""More than a link acknowledges together; with 10 kB each, more than all buffers between publisher and subscriber."""
KEY = "news.usa.sport"


@pytest.fixture(params=urls_with(Pattern.FANOUT))
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return placed(request, tmp_path)


def numbered(count: int) -> list[bytes]:
    return [n.to_bytes(4, "big") * (1 + n % 3) for n in range(count)]


def spread(publisher: Link, subscribers: list[Link], frames: list[bytes], largest: int = 1 << 17) -> list[FrameBatch]:
    """Send them, serve everybody, until each has as many."""
    outgoing, sent = FrameBatch.of(*frames), 0
    room = outgoing.used_bytes + largest
    batches = [FrameBatch(len(frames) + 1, room, largest) for _ in subscribers]

    def all_have_all() -> bool:
        nonlocal sent
        sent = publisher.send(outgoing, sent) if sent < outgoing.count else sent
        for link, batch in zip(subscribers, batches, strict=True):
            link.receive(batch)
        return all(batch.count >= outgoing.count for batch in batches)

    until(all_have_all, publisher, *subscribers)
    return batches


def test_each_subscriber_has_every_message_in_order_from_the_first(url: str) -> None:
    with publishing(url, Pattern.FANOUT, (), (), (), ()) as (publisher, subscribers):
        for batch in spread(publisher, subscribers, numbered(FEW)):
            assert list(batch) == numbered(FEW)


@pytest.mark.parametrize("pattern", [Pattern.FANOUT, Pattern.TOPIC])
def test_each_subscriber_has_all_of_each_publisher(pattern: Pattern, url: str) -> None:
    """They publish to one exchange."""
    with contextlib.ExitStack() as closing:
        publishers = [listen(distinct(url, k), TOKEN, pattern, (f"news.p{k}",)) for k in range(2)]
        everywhere = all_places([link.url for link in publishers])
        subscribers = [connect(everywhere, TOKEN, deadline_ns(), pattern, ("news.#",)) for _ in range(2)]
        for link in (*subscribers, *publishers):
            closing.callback(link.close)
        for k, publisher in enumerate(publishers):
            await_subscribers(publisher, len(subscribers), deadline_ns())
            for batch in spread(publisher, subscribers, numbered(20 + k)):
                assert list(batch) == numbered(20 + k)


def distinct(url: str, number: int) -> str:
    """Without a broker each publisher has a place of his own; ports of 0 are others by themselves."""
    base, question, query = url.partition("?")
    return url if "@" in url or "127.0.0.1" in url else f"{base}{number}{question}{query}"


def all_places(urls: list[str]) -> str:
    first, *_ = addresses = [Address.parse(url, TOKEN) for url in urls]
    backs = [address.options["back"] for address in addresses if "back" in address.options]
    options = {**first.options, **({"back": ",".join(backs)} if backs else {})}
    places = dict.fromkeys(address.place for address in addresses)
    return replace(first, place=",".join(places), options=options).url


def test_a_way_back_is_named_for_each_of_several_publishers() -> None:
    with pytest.raises(BadAddress, match="back is '3'; it takes a port for each of 2 places"):
        connect("zeromq://127.0.0.1:1,127.0.0.1:2?back=3", TOKEN, deadline_ns(), Pattern.FANOUT)


def test_the_publisher_hears_every_subscriber(url: str) -> None:
    with publishing(url, Pattern.FANOUT, (), (), ()) as (publisher, subscribers):
        heard = FrameBatch()
        for number, link in enumerate(subscribers):
            assert link.send(FrameBatch.of(b"from %d" % number), 0) == 1
        until(lambda: publisher.receive(heard) >= 0 and heard.count == 2, publisher, *subscribers)
        assert sorted(heard) == [b"from 0", b"from 1"]


def test_a_topic_goes_to_those_who_asked_for_its_key(url: str) -> None:
    wanted = [("news.usa.#",), ("other.#", "news.usa.sport"), ("news.usa",), ("news.usa.sports",)]
    with publishing(url, Pattern.TOPIC, (KEY,), *wanted) as (publisher, subscribers):
        for batch in spread(publisher, subscribers[:2], numbered(FEW)):
            assert list(batch) == numbered(FEW)
        nothing = FrameBatch()
        assert [link.receive(nothing) for link in subscribers[2:]] == [0, 0]


def test_many_patterns_of_one_subscriber_are_one_stream(url: str) -> None:
    patterns = tuple(f"quotes.q{n}.#" for n in range(12))
    with publishing(url, Pattern.TOPIC, ("quotes.q7.now",), patterns) as (publisher, subscribers):
        (batch,) = spread(publisher, subscribers, numbered(FEW))
        assert list(batch) == numbered(FEW)


@pytest.mark.parametrize("pattern", [Pattern.FANOUT, Pattern.TOPIC])
def test_the_longest_frame_passes_and_a_longer_one_does_not(pattern: Pattern, url: str) -> None:
    frame = bytes(range(256)) * (LONGEST_FRAME // 256)
    with publishing(url, pattern, (KEY,), ("#",)) as (publisher, subscribers):
        (batch,) = spread(publisher, subscribers, [frame, b"", frame], LONGEST_FRAME)
        assert list(batch) == [frame, b"", frame]
        assert publisher.send(FrameBatch.of(bytes(5000)), 0) == 1
        small = FrameBatch(10, 4096, 1000)
        until(lambda: subscribers[0].receive(small) > 0 or subscribers[0].junk == 1, publisher, *subscribers)
        assert small.count == 0


def test_a_slow_subscriber_stops_the_publisher_instead_of_losing_messages(tmp_path: Path) -> None:
    url = f"zeromq+ipc://{tmp_path}/link?hwm=10"
    with publishing(url, Pattern.FANOUT, (), (), ()) as (publisher, (quick, slow)):
        outgoing, sent = FrameBatch.of(*[bytes(10_000)] * MANY), 0
        batch, taken = FrameBatch(MANY + 1, MANY * 10_000 + (1 << 17)), 0
        quiet_ns = time.monotonic_ns() + 200_000_000
        while time.monotonic_ns() < quiet_ns:
            first, sent = sent, publisher.send(outgoing, sent)
            taken += quick.receive(batch)
            quiet_ns = time.monotonic_ns() + 200_000_000 if sent > first else quiet_ns
        assert sent < MANY, "it waits for who does not read"
        started_ns, calls = time.monotonic_ns(), 0
        while time.monotonic_ns() < started_ns + 50_000_000:
            sent = publisher.send(outgoing, sent)
            publisher.wait(started_ns + 50_000_000, readable=False, writable=True)
            calls += 1
        assert calls < 50, "and sleeps meanwhile"
        late = FrameBatch(MANY + 1, MANY * 10_000 + (1 << 17))

        def all_there() -> bool:
            nonlocal sent
            sent = publisher.send(outgoing, sent) if sent < MANY else sent
            quick.receive(batch)
            slow.receive(late)
            return batch.count == late.count == MANY

        until(all_there, publisher, quick, slow)


def test_a_subscriber_s_leaving_leaves_the_others(url: str) -> None:
    with publishing(url, Pattern.FANOUT, (), (), ()) as (publisher, subscribers):
        spread(publisher, subscribers, numbered(10))
        subscribers[0].close()
        assert list(carry(publisher, subscribers[1], FrameBatch.of(*numbered(FEW)))) == numbered(FEW)


def test_who_has_nothing_to_do_sleeps_though_he_never_sent(url: str) -> None:
    with publishing(url, Pattern.FANOUT, (), ()) as (publisher, subscribers):
        for link in (*subscribers, publisher):
            end_ns, calls = time.monotonic_ns() + 50_000_000, 0
            while time.monotonic_ns() < end_ns:
                link.wait(end_ns)
                calls += 1
            assert calls < 50


def test_subscribers_who_do_not_come_are_missed() -> None:
    link = listen("zeromq://127.0.0.1:0", TOKEN, Pattern.FANOUT)
    with pytest.raises(PeerGone, match="0 of 2 subscribers came"):
        await_subscribers(link, 2, deadline_ns(0.01))
    link.close()


@pytest.mark.parametrize("client", ["compiled", "pika"])
def test_a_key_that_no_pattern_matches_is_said(client: str, broker_place: str) -> None:
    with publishing(f"amqp://{broker_place}?client={client}", Pattern.TOPIC, (KEY,), ("news.*",)) as (publisher, _):
        assert publisher.send(FrameBatch.of(b"x"), 0) == 1
        with pytest.raises(TransportError, match=r"no queue takes messages of the key 'news\.usa\.sport'"):
            until(lambda: publisher.receive(FrameBatch()) > 0, publisher)


def test_a_pattern_that_is_no_prefix_is_refused_without_a_broker() -> None:
    for pattern in ("news.*", "*.usa", "#.usa", "news.#.usa"):
        with pytest.raises(BadAddress, match="ZeroMQ matches prefixes"):
            connect("zeromq://127.0.0.1:1", TOKEN, deadline_ns(), Pattern.TOPIC, (pattern,))
    with pytest.raises(BadAddress, match="at most 255 bytes"):
        listen("zeromq://127.0.0.1:0", TOKEN, Pattern.TOPIC, ("k" * 256,))


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        ("a.b", ("a.b",), ("a", "a.bc", "a.b.c")),
        ("a.*", ("a.b",), ("a", "a.b.c")),
        ("a.#", ("a", "a.b", "a.b.c"), ("ab", "b.a")),
        ("#", ("", "a", "a.b"), ()),
        ("#.b.*", ("b.c", "a.b.c", "a.a.b.c"), ("a.b", "b.c.d")),
    ],
)
def test_keys_match_as_amqp_says(pattern: str, yes: tuple[str, ...], no: tuple[str, ...]) -> None:
    assert all(matches(pattern, key) for key in yes)
    assert not any(matches(pattern, key) for key in no)


@pytest.mark.parametrize("pattern", ["a.b", "a.#", "#"])
def test_prefixes_match_what_the_pattern_matches(pattern: str) -> None:
    for key in ("a", "a.b", "a.bc", "a.b.c", "ab", "b", "a.b.#"):
        on_the_wire = key.encode() + b"\0" + b"frame"
        assert any(map(on_the_wire.startswith, prefixes(pattern))) is matches(pattern, key)
