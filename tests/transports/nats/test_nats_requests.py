"""Requests keep the subject of their asker, and answers are laid out as a server reads them, however bytes are cut."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from transports.blocks import lay_out_answers
from transports.frames import ADDRESS_BYTES, ANSWERED, RECEIVED, FrameBatch, ReturnAddresses
from transports.nats.connection import NO_ADDRESSES
from transports.nats.protocol import FULL, INCOMPLETE, OTHER, scan_frames

subjects = st.one_of(
    st.just(""),
    st.text("abc.", min_size=1, max_size=20),
    st.just("x" * (ADDRESS_BYTES - 4)),  # one byte more than an address has room for
)
requests = st.lists(st.tuples(subjects, st.binary(max_size=100)), max_size=8)


def block(reply_to: str, frame: bytes) -> bytes:
    """A request as the server delivers it."""
    return b"MSG exchange.run.in 1 %s%d\r\n%s\r\n" % (f"{reply_to} ".encode() if reply_to else b"", len(frame), frame)


def scan(stream: bytes, askers: ReturnAddresses, batch: FrameBatch, largest: int = 1000) -> tuple[int, int]:
    """Scan a stream into a batch; return why the scan ended, and where."""
    data = np.frombuffer(stream, np.uint8).copy()
    why, at, count, _ = scan_frames(
        data, 0, len(data), largest, batch.buffer, batch.offsets, batch.count,
        askers.addresses, askers.lengths, askers.counts,
    )  # fmt: skip
    batch.count = int(count)
    return int(why), int(at)


@given(requests)
def test_each_answer_goes_to_the_asker_of_its_request(asked: list[tuple[str, bytes]]) -> None:
    askers = ReturnAddresses(16)
    batch = FrameBatch(16)
    scan(b"".join(block(*request) for request in asked), askers, batch)
    assert list(batch) == [frame for _, frame in asked]
    out = np.zeros(10_000, np.uint8)
    taken, used = lay_out_answers(
        batch.buffer, batch.offsets, 0, batch.count, askers.addresses, askers.lengths, askers.counts, out, 0
    )
    expected = [
        b"PUB %s %d\r\n%s\r\n" % (subject.encode(), len(frame), frame)
        for subject, frame in asked
        if 0 < len(subject) < ADDRESS_BYTES - 4
    ]
    assert (taken, out[:used].tobytes()) == (len(asked), b"".join(expected))
    assert askers.counts[ANSWERED] == askers.counts[RECEIVED] == len(asked)


@given(requests, st.integers(0, 300), st.binary(max_size=40))
def test_requests_end_where_frames_would(asked: list[tuple[str, bytes]], cut: int, garbage: bytes) -> None:
    stream = (b"".join(block(*request) for request in asked) + garbage)[: cut or None]
    batch = FrameBatch(16)
    why, at = scan(stream, ReturnAddresses(16), batch)
    same = FrameBatch(16)
    why_of_frames, at_of_frames = scan(stream, NO_ADDRESSES, same)
    assert why in (INCOMPLETE, FULL, OTHER)
    assert (why, at, list(batch)) == (why_of_frames, at_of_frames, list(same))


def test_no_more_requests_are_taken_than_can_be_answered() -> None:
    stream = block("one", b"1") + block("two", b"2") + block("three", b"3")
    batch = FrameBatch(16)
    assert scan(stream, ReturnAddresses(2), batch) == (FULL, len(block("one", b"1") + block("two", b"2")))
    assert list(batch) == [b"1", b"2"]
