"""Destinations named in the frames: one connection sends to many, and consumes many queues and subscriptions."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.transports.conftest import TOKEN, deadline_ns, placed, until, urls_with
from transports.base import Link, Pattern
from transports.frames import FrameBatch
from transports.registry import connect, listen


@pytest.fixture(params=urls_with(Pattern.ROUTED))
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return placed(request, tmp_path)


@contextlib.contextmanager
def ends(url: str, *keys: tuple[str, ...]) -> Iterator[list[Link]]:
    with contextlib.ExitStack() as closing:
        links = [listen(url, TOKEN, Pattern.ROUTED, own) for own in keys]
        for link in links:
            closing.callback(link.close)
        yield links


def frame(destination: int, text: str) -> bytes:
    return destination.to_bytes(2, "little") + text.encode()


def test_each_frame_goes_to_the_destination_whose_number_it_begins_with(url: str) -> None:
    keys = ("orders", "prices", "bills")
    with ends(url, ("<orders", "<bills"), ("<prices@north",), ("<prices@south",)) as receivers:
        sender = connect(url, TOKEN, deadline_ns(), Pattern.ROUTED, keys)
        out = FrameBatch.of(*(frame(number % 3, f"{number}" * 900 * (number % 4)) for number in range(60)))
        batches, sent = [FrameBatch() for _ in receivers], 0

        def delivered() -> bool:
            nonlocal sent
            sent = sender.send(out, sent) if sent < out.count else sent
            for link, batch in zip(receivers, batches, strict=True):
                link.receive(batch)
            return [batch.count for batch in batches] == [40, 20, 20]

        until(delivered, *receivers, sender)
        everything = list(out)
        to_prices = [each for each in everything if each[0] == 1]
        assert sorted(batches[0]) == sorted(each for each in everything if each[0] != 1)
        assert [each for each in batches[0] if each[0] == 0] == [each for each in everything if each[0] == 0]
        assert list(batches[1]) == list(batches[2]) == to_prices
        assert [link.left(deadline_ns()) for link in receivers] == [0, 0, 0]  # type: ignore[attr-defined]
        sender.close()


def test_an_end_may_send_to_itself(url: str) -> None:
    with ends(url, ("<own", "own")) as (link,):
        batch, sent = FrameBatch(), link.send(FrameBatch.of(frame(0, "hello")), 0)
        until(lambda: link.receive(batch) >= 0 and batch.count == 1, link)
        assert (sent, list(batch)) == (1, [frame(0, "hello")])


@pytest.mark.parametrize("number", [3, 65_535])
def test_a_number_of_no_destination_is_refused(number: int, url: str) -> None:
    with (
        ends(url, ("one", "two", "three")) as (link,),
        pytest.raises(ValueError, match=f"begins with key number {number}; there are 3 destinations"),
    ):
        link.send(FrameBatch.of(frame(number, "lost")), 0)
