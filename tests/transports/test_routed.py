"""Frames that name their destination: a connection sends to several, and consumes several queues and subscriptions."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from tests.transports.conftest import TOKEN, deadline_ns, placed, serve_links_until, urls_with
from transports.base import Link, Pattern
from transports.frames import FrameBatch
from transports.registry import connect, listen


@pytest.fixture(params=urls_with(Pattern.ROUTED))
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return placed(request, tmp_path)


@contextlib.contextmanager
def receivers_of(url: str, *keys: tuple[str, ...]) -> Iterator[list[Link]]:
    """Yield a receiver for each set of keys."""
    with contextlib.ExitStack() as closing:
        links = [listen(url, TOKEN, Pattern.ROUTED, receiver_keys) for receiver_keys in keys]
        for link in links:
            closing.callback(link.close)
        yield links


def frame(destination: int, text: str) -> bytes:
    """Return a frame that begins with the number of its destination."""
    return destination.to_bytes(2, "little") + text.encode()


def test_each_frame_goes_to_the_destination_of_its_number(url: str) -> None:
    keys = ("orders", "prices", "bills")
    with receivers_of(url, ("<orders", "<bills"), ("<prices@north",), ("<prices@south",)) as receivers:
        sender = connect(url, TOKEN, deadline_ns(), Pattern.ROUTED, keys)
        frames = [frame(number % 3, f"{number}" * 900 * (number % 4)) for number in range(60)]
        to_orders = frames_to(0, frames)
        to_prices = frames_to(1, frames)
        to_bills = frames_to(2, frames)
        outgoing = FrameBatch.of(*frames)
        sent = 0
        batches = [FrameBatch() for _ in receivers]

        def is_delivered() -> bool:
            nonlocal sent
            if sent < outgoing.count:
                sent = sender.send(outgoing, sent)
            for link, batch in zip(receivers, batches, strict=True):
                link.receive(batch)
            return [batch.count for batch in batches] == [40, 20, 20]

        serve_links_until(is_delivered, *receivers, sender)
        orders_and_bills, prices_north, prices_south = batches
        assert frames_to(0, orders_and_bills) == to_orders
        assert frames_to(2, orders_and_bills) == to_bills
        assert list(prices_north) == to_prices
        assert list(prices_south) == to_prices
        for link in receivers:
            assert link.left(deadline_ns()) == 0, "messages in its queues"  # type: ignore[attr-defined]
        sender.close()


def test_a_link_may_send_to_itself(url: str) -> None:
    with receivers_of(url, ("<own", "own")) as (link,):
        batch = FrameBatch()
        assert link.send(FrameBatch.of(frame(0, "hello")), 0) == 1
        serve_links_until(lambda: link.receive(batch) > 0, link)
        assert list(batch) == [frame(0, "hello")]


def frames_to(destination: int, frames: Iterable[bytes]) -> list[bytes]:
    """Return the frames of this destination."""
    return [each for each in frames if int.from_bytes(each[:2], "little") == destination]


@pytest.mark.parametrize("number", [3, 65_535])
def test_a_number_without_a_destination_is_refused(number: int, url: str) -> None:
    with (
        receivers_of(url, ("one", "two", "three")) as (link,),
        pytest.raises(ValueError, match=f"begins with key number {number}; there are 3 destinations"),
    ):
        link.send(FrameBatch.of(frame(number, "lost")), 0)
