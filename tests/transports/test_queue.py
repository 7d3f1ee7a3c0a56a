"""A queue that several consumers share: each message goes to one consumer, from every publisher."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import pytest

from exchange.unique import unique
from tests.transports.conftest import TOKEN, deadline_ns, placed, serve_links_until, urls_with
from transports.base import Address, BadAddress, Link, Pattern, TransportError
from transports.frames import LONGEST_FRAME, FrameBatch
from transports.registry import connect, has_broker, listen

MESSAGES = 900
"""Messages of each publisher."""


@pytest.fixture(params=urls_with(Pattern.QUEUE))
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return placed(request, tmp_path)


@contextlib.contextmanager
def sharing(url: str, consumers: int, publishers: int) -> Iterator[tuple[list[Link], list[Link]]]:
    """Yield (consumers, publishers). Without a broker each consumer has its own place."""
    with contextlib.ExitStack() as closing:
        consumer_links: list[Link] = []
        for number in range(consumers):
            consumer = listen(distinct(url, number), TOKEN, Pattern.QUEUE)
            closing.callback(consumer.close)
            consumer_links.append(consumer)
        publisher_links: list[Link] = []
        for _ in range(publishers):
            publisher = connect(all_places(consumer_links), TOKEN, deadline_ns(), Pattern.QUEUE)
            closing.callback(publisher.close)
            publisher_links.append(publisher)
        yield consumer_links, publisher_links


def distinct(url: str, number: int) -> str:
    """Return the address for the consumer of this number: all share a broker, else each has its own place."""
    is_shared_or_any_port = has_broker(url) or "127.0.0.1" in url  # with port 0 the system chooses different ports
    if is_shared_or_any_port:
        return url
    base, question_mark, query = url.partition("?")
    return f"{base}{number}{question_mark}{query}"


def all_places(links: list[Link]) -> str:
    """Return one address with the places of all these links."""
    addresses = [Address.parse(link.url, TOKEN) for link in links]
    places = unique(address.place for address in addresses)
    return links[0].url.replace(addresses[0].place, ",".join(places))


def numbered(publisher: int) -> list[bytes]:
    """Return frames with the publisher's number and their own."""
    return [bytes([publisher]) + number.to_bytes(4, "big") for number in range(MESSAGES)]


def test_each_message_goes_to_one_consumer_in_its_publisher_s_order(url: str) -> None:
    with sharing(url, consumers=3, publishers=2) as (consumers, publishers):
        batches = [FrameBatch() for _ in consumers]
        outgoing = [FrameBatch.of(*numbered(0)), FrameBatch.of(*numbered(1))]
        sent = [0, 0]

        def is_delivered() -> bool:
            for number, link in enumerate(publishers):
                if sent[number] < MESSAGES:
                    sent[number] = link.send(outgoing[number], sent[number])
            for link, batch in zip(consumers, batches, strict=True):
                link.receive(batch)
            return sum(batch.count for batch in batches) == 2 * MESSAGES

        serve_links_until(is_delivered, *consumers, *publishers)
        assert sorted(chain.from_iterable(batches)) == sorted(numbered(0) + numbered(1))
        for batch in batches:
            assert batch.count > 0, "a consumer got no message"
            for publisher in (0, 1):
                frames = [frame for frame in batch if frame[0] == publisher]
                assert frames == sorted(frames)


def test_other_consumers_go_on_after_one_has_left(url: str) -> None:
    with sharing(url, consumers=2, publishers=1) as ((leaves, stays), (publisher,)):
        batch = FrameBatch()
        publisher.send(FrameBatch.of(*numbered(0)[:20]), 0)

        def have_all() -> bool:
            leaves.receive(batch)
            stays.receive(batch)
            return batch.count == 20

        serve_links_until(have_all, leaves, stays, publisher)
        leaves.close()
        batch.clear()

        def has_a_later_message() -> bool:
            publisher.send(FrameBatch.of(b"after"), 0)
            stays.receive(batch)
            return batch.count > 0

        serve_links_until(has_a_later_message, stays, publisher)
        assert batch[0] == b"after"


def test_a_frame_of_the_greatest_length_arrives(url: str) -> None:
    frame = bytes(range(256)) * (LONGEST_FRAME // 256)
    with sharing(url, consumers=1, publishers=1) as ((consumer,), (publisher,)):
        batch = FrameBatch(10, 4 * LONGEST_FRAME, LONGEST_FRAME)
        outgoing = FrameBatch.of(frame, b"small", frame)
        sent = 0

        def is_delivered() -> bool:
            nonlocal sent
            if sent < 3:
                sent = publisher.send(outgoing, sent)
            consumer.receive(batch)
            return batch.count == 3

        serve_links_until(is_delivered, consumer, publisher)
        assert list(batch) == [frame, b"small", frame]


def test_publishers_receive_nothing_and_consumers_cannot_send(url: str) -> None:
    with sharing(url, consumers=1, publishers=1) as ((consumer,), (publisher,)):
        assert publisher.receive(FrameBatch()) == 0
        with pytest.raises(Exception, match=r"only receives|not supported") as refused:
            consumer.send(FrameBatch.of(b"x"), 0)
        if has_broker(url):
            assert refused.type is TransportError


@pytest.mark.parametrize("scheme", ["tcp", "memory"])
def test_a_transport_without_the_pattern_lists_its_patterns(scheme: str) -> None:
    with pytest.raises(BadAddress, match=f"{scheme} has no pattern 'queue'; it has pair, fan-in"):
        listen(f"{scheme}://127.0.0.1:0", TOKEN, Pattern.QUEUE)


@pytest.mark.parametrize("mark", ["0", "-1", "many", ""])
def test_a_wrong_high_water_mark_is_refused(mark: str) -> None:
    with pytest.raises(BadAddress, match=r"hwm is .*; it takes a number of messages"):
        listen(f"zeromq://127.0.0.1:0?hwm={mark}", TOKEN, Pattern.QUEUE)
