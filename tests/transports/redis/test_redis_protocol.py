"""The compiled scanners of RESP3, against the obvious ones, over bytes cut anywhere."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transports.frames import FrameBatch
from transports.redis.protocol import (
    ENTRIES,
    FULL,
    IDS_BYTES,
    INCOMPLETE,
    IS_READ,
    LEFT,
    NEW_BYTES,
    NEW_IDS,
    OTHER,
    READING_PLACES,
    lay_out_read,
    scan_entries,
    scan_messages,
    scan_replies,
)
from transports.redis.resp import command, parse

CHANNEL = b">3\r\n$7\r\nmessage\r\n$2\r\nin\r\n$"
READ_HEAD = b"%1\r\n$2\r\nin\r\n*"
ACKNOWLEDGE = b"$4\r\nXACK\r\n$2\r\nin\r\n$1\r\ng\r\n"
TRIM = b"*4\r\n$5\r\nXTRIM\r\n$2\r\nin\r\n$5\r\nMINID\r\n"
READ = command("XREADGROUP")
frames = st.lists(st.binary(max_size=200), max_size=8)


def array(data: bytes) -> np.ndarray:
    return np.frombuffer(data, np.uint8).copy() if data else np.zeros(0, np.uint8)


def message(frame: bytes) -> bytes:
    return CHANNEL + b"%d\r\n%s\r\n" % (len(frame), frame)


def entry(frame: bytes, number: int) -> bytes:
    entry_id = b"1700000000000-%d" % number
    return b"*2\r\n$%d\r\n%s\r\n*2\r\n$1\r\nf\r\n$%d\r\n%s\r\n" % (len(entry_id), entry_id, len(frame), frame)


def read_of(sent: list[bytes]) -> bytes:
    return READ_HEAD + b"%d\r\n" % len(sent) + b"".join(entry(frame, n) for n, frame in enumerate(sent))


class Reader:
    """Takes pieces of a stream as a connection does: what was not taken stands before the next piece."""

    def __init__(self, room: int = 100, largest: int = 1 << 17) -> None:
        self.rest = b""
        self.batch = FrameBatch(room)
        self.largest = largest
        self.reading = np.zeros(READING_PLACES, np.int64)
        self.ids = np.zeros(IDS_BYTES, np.uint8)
        self.too_long = 0

    def take(self, piece: bytes, is_stream: bool) -> int:
        data = array(self.rest + piece)
        batch = self.batch
        if is_stream:
            why, at, count, too_long = scan_entries(
                data, 0, len(data), array(READ_HEAD), self.largest, batch.buffer, batch.offsets, batch.count,
                self.reading, self.ids,
            )  # fmt: skip
        else:
            why, at, count, too_long = scan_messages(
                data, 0, len(data), array(CHANNEL), self.largest, batch.buffer, batch.offsets, batch.count
            )
        batch.count = int(count)
        self.too_long += int(too_long)
        self.rest = data[int(at) :].tobytes()
        return int(why)


def pieces(stream: bytes, data: st.DataObject) -> list[bytes]:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=6)))
    return [stream[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(stream)], strict=True)]


@given(frames, st.data())
def test_messages_come_out_in_order_however_bytes_are_cut(sent: list[bytes], data: st.DataObject) -> None:
    reader = Reader()
    for piece in pieces(b"".join(map(message, sent)), data):
        assert reader.take(piece, is_stream=False) == INCOMPLETE
    assert list(reader.batch) == sent
    assert reader.rest == b""


@given(st.lists(frames, max_size=3), st.data())
def test_entries_come_out_in_order_however_bytes_are_cut(reads: list[list[bytes]], data: st.DataObject) -> None:
    """Replies to XACK and XTRIM stand between the reads."""
    reader = Reader()
    for piece in pieces(b"".join(b":7\r\n:0\r\n" + read_of(sent) for sent in reads), data):
        assert reader.take(piece, is_stream=True) == INCOMPLETE
    sent = [frame for frames_of_read in reads for frame in frames_of_read]
    assert list(reader.batch) == sent
    assert reader.reading[NEW_IDS] == len(sent)
    ids = reader.ids[: reader.reading[NEW_BYTES]].tobytes()
    numbers = [n for frames_of_read in reads for n in range(len(frames_of_read))]
    assert ids == b"".join(b"$%d\r\n1700000000000-%d\r\n" % (14 + len(str(n)), n) for n in numbers)
    assert reader.reading[LEFT] == 0
    assert reader.reading[IS_READ] == bool(reads)


@pytest.mark.parametrize("is_stream", [False, True])
@given(st.binary(max_size=400))
def test_any_bytes_end_a_scan_behind_no_byte_that_was_not_taken(is_stream: bool, garbage: bytes) -> None:
    reader = Reader(room=3)
    before = read_of([b"whole"]) if is_stream else message(b"whole")
    assert reader.take(before + garbage, is_stream) in (INCOMPLETE, FULL, OTHER)
    assert reader.batch[0] == b"whole"
    assert (before + garbage).endswith(reader.rest)


@pytest.mark.parametrize("is_stream", [False, True])
def test_a_full_batch_leaves_the_rest_where_it_is(is_stream: bool) -> None:
    sent = [b"one", b"two", b"three"]
    reader = Reader(room=2)
    assert reader.take(read_of(sent) if is_stream else b"".join(map(message, sent)), is_stream) == FULL
    assert list(reader.batch) == sent[:2]
    reader.batch.clear()
    assert reader.take(b"", is_stream) == INCOMPLETE
    assert list(reader.batch) == sent[2:]


@pytest.mark.parametrize("is_stream", [False, True])
def test_a_frame_that_is_too_long_is_counted_and_left_out(is_stream: bool) -> None:
    sent = [b"x" * 50, b"short"]
    reader = Reader(largest=10)
    assert reader.take(read_of(sent) if is_stream else b"".join(map(message, sent)), is_stream) == INCOMPLETE
    assert (list(reader.batch), reader.too_long) == ([b"short"], 1)


@pytest.mark.parametrize(
    "other",
    [
        b">3\r\n$7\r\nmessage\r\n$5\r\nwords\r\n$5\r\nhello\r\n",
        b">3\r\n$9\r\nsubscribe\r\n$2\r\nin\r\n:1\r\n",
        b"+PONG\r\n",
        b"-ERR unknown command\r\n",
        b"_\r\n",
    ],
)
@pytest.mark.parametrize("is_stream", [False, True])
def test_every_other_value_is_left_to_python(is_stream: bool, other: bytes) -> None:
    reader = Reader()
    before = read_of([b"frame"]) if is_stream else message(b"frame")
    assert reader.take(before + other, is_stream) == OTHER
    assert reader.rest == other
    parsed = parse(reader.rest, 0)
    assert parsed is not None
    assert parsed.end == len(other)


def test_a_read_of_more_entries_than_were_asked_for_is_left_to_python() -> None:
    assert Reader().take(READ_HEAD + b"%d\r\n" % (ENTRIES + 1), is_stream=True) == OTHER


@given(st.lists(st.one_of(st.integers(0, 3), st.just(b"1700000000000-0")), max_size=8), st.data())
def test_replies_are_counted_and_those_that_reached_nobody(replies: list[int | bytes], data: st.DataObject) -> None:
    stream = b"".join(
        b":%d\r\n" % reply if isinstance(reply, int) else b"$%d\r\n%s\r\n" % (len(reply), reply) for reply in replies
    )
    counted = unheard = 0
    rest = b""
    for piece in pieces(stream, data):
        now = array(rest + piece)
        why, at, more, more_unheard = scan_replies(now, 0, len(now))
        assert why == INCOMPLETE
        rest = now[int(at) :].tobytes()
        counted += int(more)
        unheard += int(more_unheard)
    assert (counted, unheard, rest) == (len(replies), replies.count(0), b"")


def test_an_error_among_replies_is_left_to_python() -> None:
    stream = array(b":1\r\n-OOM command not allowed\r\n")
    assert scan_replies(stream, 0, len(stream)) == (OTHER, 4, 1, 0)


def test_a_read_is_acknowledged_with_the_read_after_the_next_and_cut_off_now_and_then() -> None:
    reader = Reader()
    old = np.zeros(IDS_BYTES, np.uint8)
    out = np.zeros(1 << 16, np.uint8)
    commands = []
    for _ in range(3):
        reader.take(read_of([b"f"] * 40), is_stream=True)
        words = map(array, (ACKNOWLEDGE, TRIM, READ))
        used = lay_out_read(reader.reading, old, reader.ids, *words, out, 0)
        commands.append(commands_in(out[:used].tobytes()))
    ids = [b"1700000000000-%d" % n for n in range(40)]
    acknowledgement = [b"XACK", b"in", b"g", *ids]
    assert commands[0] == [[b"XREADGROUP"]]
    assert commands[1] == [acknowledgement, [b"XREADGROUP"]]
    assert commands[2] == [acknowledgement, [b"XTRIM", b"in", b"MINID", ids[-1]], [b"XREADGROUP"]]


def commands_in(data: bytes) -> list[list[bytes]]:
    commands = []
    at = 0
    while at < len(data):
        parsed = parse(data, at)
        assert parsed is not None
        commands.append(parsed.value)
        at = parsed.end
    return commands
