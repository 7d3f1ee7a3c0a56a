"""The wire format: every message both ways, byte for byte, and what malformed bytes lead to."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exchange.messages import (
    LAYOUTS,
    TYPES,
    Cancel,
    Cancelled,
    Confirmation,
    End,
    Hello,
    MalformedMessage,
    Message,
    Order,
    Quote,
    Rejection,
    Replace,
    Replaced,
    Resume,
    Statistics,
    Throughput,
    Timestamp,
    Trade,
    TypedOrder,
    decode,
    decode_all,
    decode_record,
    encode,
    read,
)

# Written from the specification, not from the code: type byte, bytes, width of each field in bytes.
SPECIFIED = {
    Order: (1, 10, {"id": 4, "side": 1, "price": 2, "volume": 2}),
    Confirmation: (2, 5, {"id": 4}),
    Trade: (3, 9, {"id": 4, "price": 2, "volume": 2}),
    Quote: (4, 5, {"bid": 2, "ask": 2}),
    Throughput: (5, 10, {"meter": 1, "rate_per_s": 8}),
    Timestamp: (6, 18, {"meter": 1, "correlation_id": 8, "time_ns": 8}),
    End: (7, 33, {"sent": 8, "sent_checksum": 8, "received": 8, "received_checksum": 8}),
    Rejection: (8, 6, {"id": 4, "reason": 1}),
    Cancel: (10, 5, {"id": 4}),
    Cancelled: (11, 7, {"id": 4, "volume": 2}),
    Resume: (13, 21, {"session": 4, "messages": 8, "checksum": 8}),
    TypedOrder: (14, 11, {"id": 4, "side": 1, "price": 2, "volume": 2, "order_type": 1}),
    Replace: (15, 9, {"id": 4, "price": 2, "volume": 2}),
    Replaced: (16, 9, {"id": 4, "price": 2, "volume": 2}),
    Hello: (
        12,
        33,
        {
            "version": 2, "run": 8, "source": 1, "policy": 1,
            "packing": 2, "max_price": 2, "wall_ns": 8, "monotonic_ns": 8,
        },
    ),
}  # fmt: skip

BY_HAND = [
    (Order(id=7, side=2, price=499, volume=45), "01 07000000 02 f301 2d00"),
    (Order(id=0x01020304, side=1, price=0x0506, volume=0x0708), "01 04030201 01 0605 0807"),
    (Confirmation(id=258), "02 02010000"),
    (Trade(id=1, price=450, volume=100), "03 01000000 c201 6400"),
    (Quote(bid=450, ask=549), "04 c201 2502"),
    (Throughput(meter=2, rate_per_s=8000), "05 02 401f000000000000"),
    (Timestamp(meter=6, correlation_id=1, time_ns=256), "06 06 0100000000000000 0001000000000000"),
    (Rejection(id=9, reason=4), "08 09000000 04"),
    (Statistics(b"{}"), "09 7b7d"),
    (Cancelled(id=3, volume=5), "0b 03000000 0500"),
    (TypedOrder(id=7, side=2, price=499, volume=45, order_type=4), "0e 07000000 02 f301 2d00 04"),
    (Replace(id=7, price=499, volume=45), "0f 07000000 f301 2d00"),
    (Replaced(id=7, price=499, volume=45), "10 07000000 f301 2d00"),
]


def messages_of(kind: type[Message]) -> st.SearchStrategy[Message]:
    """Any value that the layout of `kind` has room for."""
    if kind is Statistics:
        return st.builds(Statistics, st.binary(max_size=64))
    dtype = LAYOUTS[kind].dtype
    widths = {name: 8 * dtype[name].itemsize for name in dtype.names[1:]}
    return st.builds(kind, **{name: st.integers(0, 2**bits - 1) for name, bits in widths.items()})


FIXED_KINDS = [kind for kind in LAYOUTS if kind is not Statistics]
ANY_MESSAGE = st.one_of(*map(messages_of, LAYOUTS))
FIXED_MESSAGES = st.lists(st.one_of(*map(messages_of, FIXED_KINDS)), max_size=12)


def joined(messages: list[Message]) -> bytes:
    return b"".join(map(encode, messages))


@pytest.mark.parametrize("kind", SPECIFIED, ids=lambda kind: kind.__name__)
def test_type_byte_size_and_fields_are_those_of_the_specification(kind):
    code, size, widths = SPECIFIED[kind]
    layout = LAYOUTS[kind]
    assert (layout.code, layout.size) == (code, size)
    assert list(kind._fields) == list(widths)
    assert {name: layout.dtype[name].itemsize for name in widths} == widths
    assert layout.dtype.itemsize == size
    zero = encode(kind(*[0] * len(widths)))
    assert (zero[0], len(zero)) == (code, size)


def test_the_specification_names_every_message_there_is():
    assert {**{kind: code for kind, (code, _, _) in SPECIFIED.items()}, Statistics: 9} == {
        kind: code for code, kind in TYPES.items()
    }


@pytest.mark.parametrize(("message", "by_hand"), BY_HAND, ids=lambda value: type(value).__name__)
def test_bytes_are_packed_and_little_endian(message, by_hand):
    assert encode(message) == bytes.fromhex(by_hand)
    assert decode(bytes.fromhex(by_hand)) == message


def test_a_statistics_record_fills_its_frame():
    document = b'{"kind": "end"}'
    assert encode(Statistics(document)) == b"\x09" + document
    assert decode(b"\x09" + document) == Statistics(document)
    assert decode(b"\x09") == Statistics(b"")


@pytest.mark.parametrize("kind", LAYOUTS, ids=lambda kind: kind.__name__)
def test_every_kind_survives_the_wire(kind):
    @given(messages_of(kind))
    def survives(message):
        frame = encode(message)
        for data in (frame, memoryview(frame)):
            decoded = decode(data)
            assert type(decoded) is kind
            assert decoded == message
        assert read(frame) == message

    survives()


@pytest.mark.parametrize("kind", FIXED_KINDS, ids=lambda kind: kind.__name__)
def test_a_compiled_kernel_reads_the_same_fields_in_place(kind):
    @given(st.lists(messages_of(kind), min_size=1, max_size=5))
    def reads_the_same(messages):
        table = np.frombuffer(joined(messages), LAYOUTS[kind].dtype)
        assert [tuple(row)[1:] for row in table.tolist()] == [tuple(message) for message in messages]
        assert (table["type"] == LAYOUTS[kind].code).all()

    reads_the_same()


@pytest.mark.parametrize("kind", FIXED_KINDS, ids=lambda kind: kind.__name__)
def test_a_value_wider_than_its_field_is_refused(kind):
    widths = SPECIFIED[kind][2]
    for name, width in widths.items():
        for value in (2 ** (8 * width), -1):
            with pytest.raises(struct.error):
                encode(kind(**{**dict.fromkeys(widths, 0), name: value}))


@given(FIXED_MESSAGES, st.none() | messages_of(Statistics))
def test_records_one_after_the_other_come_back_in_order(messages, statistics):
    everything = [*messages, *([statistics] if statistics else [])]
    assert list(decode_all(joined(everything))) == everything


@given(FIXED_MESSAGES)
def test_a_record_is_found_where_the_one_before_it_ends(messages):
    data, offset = joined(messages), 0
    for message in messages:
        decoded, end = decode_record(data, offset)
        assert (decoded, end - offset) == (message, len(encode(message)))
        offset = end
    with pytest.raises(MalformedMessage) as nothing_left:
        decode_record(data, offset)
    assert nothing_left.value.offset == len(data)


def read_while_possible(data: bytes) -> tuple[list[Message], MalformedMessage | None]:
    messages = []
    try:
        for message in decode_all(data):
            messages.append(message)
    except MalformedMessage as error:
        return messages, error
    return messages, None


@given(st.binary(max_size=80) | st.builds(lambda m, tail: joined(m) + tail, FIXED_MESSAGES, st.binary(max_size=20)))
def test_any_bytes_are_messages_or_are_refused_where_they_go_wrong(data):
    messages, error = read_while_possible(data)
    if error is None:
        assert joined(messages) == data
        return
    assert joined(messages) == data[: error.offset]
    assert error.offset < len(data)
    assert str(error).endswith(f"at offset {error.offset}")
    with pytest.raises(MalformedMessage):
        decode_record(data, error.offset)


@given(FIXED_MESSAGES.filter(len), st.data())
def test_a_changed_byte_leaves_the_records_before_it_alone(messages, data):
    frame = bytearray(joined(messages))
    at = data.draw(st.integers(0, len(frame) - 1))
    frame[at] = data.draw(st.integers(0, 255))
    ends = np.cumsum([len(encode(message)) for message in messages])
    untouched = int(np.searchsorted(ends, at, side="right"))
    decoded, error = read_while_possible(bytes(frame))
    assert decoded[:untouched] == messages[:untouched]
    assert error is None or error.offset >= (ends[untouched - 1] if untouched else 0)


@given(st.binary(max_size=80))
def test_reading_a_strangers_frame_never_raises(frame):
    try:
        expected = decode(frame)
    except MalformedMessage:
        expected = None
    assert read(frame) == expected


@pytest.mark.parametrize("kind", FIXED_KINDS, ids=lambda kind: kind.__name__)
def test_a_truncated_record_is_refused_at_its_start(kind):
    whole = encode(kind(*[0] * len(kind._fields)))
    before = encode(Confirmation(1))
    for length in range(1, len(whole)):
        with pytest.raises(MalformedMessage, match=f"{len(whole)} bytes of {kind.__name__}, only {length} left") as cut:
            list(decode_all(before + whole[:length]))
        assert cut.value.offset == len(before)
        assert read(whole[:length]) is None


def test_an_unknown_type_byte_is_named_with_its_offset():
    before = encode(Quote(bid=1, ask=2))
    for code in sorted(set(range(256)) - set(range(1, 17))):
        messages, error = read_while_possible(before + bytes([code]) * 40)
        assert messages == [Quote(bid=1, ask=2)]
        assert (error.offset, error.reason) == (5, f"unknown type byte {code}")


def test_a_frame_of_one_record_refuses_what_stands_behind_it():
    with pytest.raises(MalformedMessage, match="1 bytes behind Quote at offset 5"):
        decode(encode(Quote(bid=1, ask=2)) + b"\x00")
    assert read(encode(Confirmation(1)) * 2) is None


def test_an_empty_frame_is_no_message():
    with pytest.raises(MalformedMessage, match="no record at offset 0"):
        decode(b"")
    assert read(b"") is None
    assert list(decode_all(b"")) == []
