"""A queue that several share: each message goes to one consumer, whoever publishes."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.transports.conftest import TOKEN, deadline_ns, placed, until, urls_with
from transports.base import Address, BadAddress, Link, Pattern, TransportError
from transports.frames import LONGEST_FRAME, FrameBatch
from transports.registry import connect, has_broker, listen

EACH = 900


@pytest.fixture(params=urls_with(Pattern.QUEUE))
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return placed(request, tmp_path)


@contextlib.contextmanager
def sharing(url: str, consumers: int, publishers: int) -> Iterator[tuple[list[Link], list[Link]]]:
    """(consumers, publishers): each has a place of its own where there is no broker."""
    with contextlib.ExitStack() as closing:
        taking = []
        for number in range(consumers):
            taking.append(listen(url if has_broker(url) else distinct(url, number), TOKEN, Pattern.QUEUE))
            closing.callback(taking[-1].close)
        giving = [connect(all_places(taking), TOKEN, deadline_ns(), Pattern.QUEUE) for _ in range(publishers)]
        for link in giving:
            closing.callback(link.close)
        yield taking, giving


def distinct(url: str, number: int) -> str:
    base, question, query = url.partition("?")
    return base + (str(number) if "127.0.0.1" not in url else "") + question + query


def all_places(links: list[Link]) -> str:
    addresses = [Address.parse(link.url, TOKEN) for link in links]
    places = dict.fromkeys(address.place for address in addresses)
    return links[0].url.replace(addresses[0].place, ",".join(places))


def numbered(publisher: int) -> list[bytes]:
    return [bytes([publisher]) + n.to_bytes(4, "big") for n in range(EACH)]


def test_every_message_goes_to_one_consumer_in_the_order_of_its_publisher(url: str) -> None:
    with sharing(url, consumers=3, publishers=2) as (taking, giving):
        batches = [FrameBatch() for _ in taking]
        outgoing, sent = [FrameBatch.of(*numbered(number)) for number in range(len(giving))], [0, 0]

        def delivered() -> bool:
            for number, link in enumerate(giving):
                sent[number] = link.send(outgoing[number], sent[number]) if sent[number] < EACH else EACH
            for link, batch in zip(taking, batches, strict=True):
                link.receive(batch)
            return sum(batch.count for batch in batches) == len(giving) * EACH

        until(delivered, *taking, *giving)
        assert sorted(frame for batch in batches for frame in batch) == sorted(numbered(0) + numbered(1))
        for batch in batches:
            assert batch.count > 0, "all of them work"
            for publisher in (0, 1):
                of_one = [frame for frame in batch if frame[0] == publisher]
                assert of_one == sorted(of_one)


def test_a_consumer_that_leaves_leaves_the_queue_to_the_others(url: str) -> None:
    with sharing(url, consumers=2, publishers=1) as (taking, giving):
        batch, sent = FrameBatch(), 0
        giving[0].send(FrameBatch.of(*numbered(0)[:20]), 0)
        until(lambda: sum(link.receive(batch) for link in taking) >= 0 and batch.count == 20, *taking, *giving)
        taking[0].close()
        batch.clear()
        more, tail = FrameBatch.of(b"after"), b""

        def heard() -> bool:
            nonlocal sent, tail
            sent += giving[0].send(more, 0)
            taking[1].receive(batch)
            tail = batch[0] if batch.count else b""
            return batch.count > 0

        until(heard, taking[1], giving[0])
        assert tail == b"after"


def test_a_frame_of_the_greatest_length_passes(url: str) -> None:
    frame = bytes(range(256)) * (LONGEST_FRAME // 256)
    with sharing(url, consumers=1, publishers=1) as (taking, giving):
        batch, sent = FrameBatch(10, 4 * LONGEST_FRAME, LONGEST_FRAME), 0
        outgoing = FrameBatch.of(frame, b"small", frame)

        def delivered() -> bool:
            nonlocal sent
            sent = giving[0].send(outgoing, sent) if sent < 3 else sent
            taking[0].receive(batch)
            return batch.count == 3

        until(delivered, *taking, *giving)
        assert list(batch) == [frame, b"small", frame]


def test_publishers_receive_nothing_and_consumers_cannot_send(url: str) -> None:
    with sharing(url, consumers=1, publishers=1) as (taking, giving):
        assert giving[0].receive(FrameBatch()) == 0
        with pytest.raises(Exception, match=r"only receives|not supported") as said:
            taking[0].send(FrameBatch.of(b"x"), 0)
        assert not has_broker(url) or said.type is TransportError


@pytest.mark.parametrize("scheme", ["tcp", "memory"])
def test_a_transport_without_the_pattern_says_so(scheme: str) -> None:
    with pytest.raises(BadAddress, match=f"{scheme} has no pattern 'queue'; it has pair, fan-in"):
        listen(f"{scheme}://127.0.0.1:0", TOKEN, Pattern.QUEUE)


@pytest.mark.parametrize("mark", ["0", "-1", "many", ""])
def test_a_high_water_mark_that_is_none_is_said(mark: str) -> None:
    with pytest.raises(BadAddress, match=r"hwm is .*; it takes a number of messages"):
        listen(f"zeromq://127.0.0.1:0?hwm={mark}", TOKEN, Pattern.QUEUE)
