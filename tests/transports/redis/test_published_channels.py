"""Messages of several channels and patterns, against what was published, over bytes cut anywhere."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.transports.conftest import TOKEN, deadline_ns, serve_links_until
from transports.base import BadAddress, CannotListen, Pattern
from transports.declaration import RunningBroker
from transports.frames import RECEIVED, FrameBatch, ReturnAddresses
from transports.redis.protocol import FULL, INCOMPLETE, NAME_BYTES, OTHER, scan_published
from transports.redis.resp import command
from transports.registry import connect, listen

PREFIX = b"exchange:run:in"
NAME = "0123456789abcdef"
ANSWER = command("PUBLISH", "exchange:run:answers:" + "-" * NAME_BYTES, "").removesuffix(b"0\r\n\r\n")
messages = st.lists(st.tuples(st.booleans(), st.sampled_from([NAME, "short"]), st.binary(max_size=200)), max_size=6)


def push(is_of_pattern: bool, channel: bytes, frame: bytes) -> bytes:
    """A message as the server delivers it: to a subscription of the channel, or of a pattern."""
    parts = [b"pmessage", b"exchange:run:in:*", channel, frame] if is_of_pattern else [b"message", channel, frame]
    return b">%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(part), part) for part in parts)


def scan(stream: bytes, addresses: ReturnAddresses) -> tuple[int, int, list[bytes]]:
    """Why the scan ended, where, and the frames."""
    batch = FrameBatch(16)
    data = np.frombuffer(stream, np.uint8).copy()
    prefix, answer = np.frombuffer(PREFIX, np.uint8).copy(), np.frombuffer(ANSWER, np.uint8).copy()
    why, at, count, _ = scan_published(
        data, 0, len(data), prefix, 1000, batch.buffer, batch.offsets, 0,
        answer, addresses.addresses, addresses.lengths, addresses.counts,
    )  # fmt: skip
    batch.count = int(count)
    return int(why), int(at), list(batch)


@given(messages, st.integers(0, 400), st.binary(max_size=30))
def test_whole_messages_come_out_in_order_however_bytes_are_cut(
    sent: list[tuple[bool, str, bytes]], cut: int, garbage: bytes
) -> None:
    blocks = [push(is_of_pattern, PREFIX + b":" + name.encode(), frame) for is_of_pattern, name, frame in sent]
    stream = (b"".join(blocks) + garbage)[: cut or None]
    why, at, frames = scan(stream, ReturnAddresses(0))
    whole = 0
    while whole < len(blocks) and len(b"".join(blocks[: whole + 1])) <= len(stream):
        whole += 1
    assert frames[:whole] == [frame for _, _, frame in sent[:whole]]
    assert why in (INCOMPLETE, FULL, OTHER)
    assert at <= len(stream)


@given(messages)
def test_each_answer_goes_to_the_asker_that_the_channel_names(sent: list[tuple[bool, str, bytes]]) -> None:
    addresses = ReturnAddresses(16)
    scan(b"".join(push(kind, PREFIX + b":" + name.encode(), frame) for kind, name, frame in sent), addresses)
    assert addresses.counts[RECEIVED] == len(sent)
    for _, name, _ in sent:
        head = addresses.take()
        expected = command("PUBLISH", f"exchange:run:answers:{name}", "").removesuffix(b"0\r\n\r\n")
        assert head == (expected if name == NAME else b"")


def test_another_channel_s_message_is_left_to_python() -> None:
    assert scan(push(False, b"exchange:run:words", b"hello"), ReturnAddresses(0))[0] == OTHER


@pytest.mark.parametrize(
    ("query", "pattern", "sentence"),
    [
        ("", Pattern.QUEUE, "redis has no pattern 'queue'; a channel gives each message to every subscriber"),
        ("?kind=stream", Pattern.TOPIC, "redis has no pattern 'topic'; a stream gives every entry to each group"),
        ("?kind=stream", Pattern.REQUESTS, "redis has no pattern 'requests'; an entry of a stream does not say"),
    ],
)
def test_a_pattern_that_a_kind_lacks_is_refused_with_the_reason(query: str, pattern: Pattern, sentence: str) -> None:
    with pytest.raises(BadAddress, match=sentence):
        listen(f"redis://127.0.0.1:1{query}", TOKEN, pattern)


def test_a_wildcard_that_redis_lacks_is_refused(redis: RunningBroker) -> None:
    with pytest.raises(BadAddress, match="may have a # at its end and no wildcard else"):
        connect(redis.url, TOKEN, deadline_ns(), Pattern.TOPIC, ("news.*",))


def test_a_second_end_that_answers_is_refused(redis: RunningBroker) -> None:
    first = listen(redis.url, TOKEN, Pattern.REQUESTS)
    with pytest.raises(CannotListen, match="has somebody who answers already"):
        listen(redis.url, TOKEN, Pattern.REQUESTS)
    first.close()


def test_a_queue_s_stream_keeps_what_came_before_its_consumers(redis: RunningBroker) -> None:
    url = f"{redis.url}?kind=stream"
    publisher = connect(url, TOKEN, deadline_ns(), Pattern.QUEUE)
    assert publisher.send(FrameBatch.of(b"early"), 0) == 1
    assert publisher.drain(deadline_ns())
    consumer = listen(url, TOKEN, Pattern.QUEUE)
    batch = FrameBatch()
    serve_links_until(lambda: consumer.receive(batch) > 0, consumer)
    assert list(batch) == [b"early"]
    publisher.close()
    consumer.close()
