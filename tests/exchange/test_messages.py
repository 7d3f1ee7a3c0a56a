"""The wire format: encoding and decoding of every message, and the errors for malformed bytes."""

from __future__ import annotations

import struct
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exchange.messages import (
    LAYOUTS,
    PROTOCOL_VERSION,
    TYPES,
    Cancel,
    Cancelled,
    CancelRequest,
    Confirmation,
    DepthLevel,
    End,
    FeedReceipt,
    Hello,
    InstrumentOrder,
    InstrumentQuote,
    MalformedMessage,
    MarketQuote,
    MarketTrade,
    Message,
    Order,
    Quote,
    Rejection,
    Replaced,
    ReplaceRequest,
    Resume,
    Snapshot,
    SnapshotRequest,
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


class Specified(NamedTuple):
    """A message's layout, written from the specification and not from the code."""

    type_byte: int
    size: int
    widths: dict[str, int]
    """Bytes of each field."""


SPECIFIED = {
    Order: Specified(1, 10, {"id": 4, "side": 1, "price": 2, "volume": 2}),
    Confirmation: Specified(2, 5, {"id": 4}),
    Trade: Specified(3, 9, {"id": 4, "price": 2, "volume": 2}),
    Quote: Specified(4, 5, {"bid": 2, "ask": 2}),
    Throughput: Specified(5, 10, {"meter": 1, "rate_per_s": 8}),
    Timestamp: Specified(6, 18, {"meter": 1, "correlation_id": 8, "time_ns": 8}),
    End: Specified(7, 33, {"sent": 8, "sent_checksum": 8, "received": 8, "received_checksum": 8}),
    Rejection: Specified(8, 6, {"id": 4, "reason": 1}),
    Cancel: Specified(10, 5, {"id": 4}),
    Cancelled: Specified(11, 7, {"id": 4, "volume": 2}),
    Resume: Specified(13, 21, {"session": 4, "messages": 8, "checksum": 8}),
    TypedOrder: Specified(14, 11, {"id": 4, "side": 1, "price": 2, "volume": 2, "order_type": 1}),
    ReplaceRequest: Specified(15, 13, {"id": 4, "order_id": 4, "price": 2, "volume": 2}),
    Replaced: Specified(16, 9, {"id": 4, "price": 2, "volume": 2}),
    CancelRequest: Specified(17, 9, {"id": 4, "order_id": 4}),
    InstrumentOrder: Specified(18, 13, {"id": 4, "instrument": 2, "side": 1, "price": 2, "volume": 2, "order_type": 1}),
    InstrumentQuote: Specified(19, 7, {"instrument": 2, "bid": 2, "ask": 2}),
    MarketTrade: Specified(24, 23, {"instrument": 2, "sequence": 8, "read_ns": 8, "price": 2, "volume": 2}),
    MarketQuote: Specified(25, 23, {"instrument": 2, "sequence": 8, "read_ns": 8, "bid": 2, "ask": 2}),
    DepthLevel: Specified(
        26,
        27,
        {"instrument": 2, "sequence": 8, "read_ns": 8, "side": 1, "place": 1, "price": 2, "volume": 4},
    ),
    SnapshotRequest: Specified(27, 2, {"subscriber": 1}),
    Snapshot: Specified(28, 16, {"instrument": 2, "sequence": 8, "subscriber": 1, "bid": 2, "ask": 2}),
    FeedReceipt: Specified(29, 10, {"subscriber": 1, "sequence": 8}),
    Hello: Specified(
        12,
        38,
        {
            "version": 2,
            "run": 8,
            "source": 1,
            "policy": 1,
            "packing": 2,
            "max_price": 2,
            "wall_ns": 8,
            "monotonic_ns": 8,
            "instruments": 2,
            "gateways": 1,
            "engines": 1,
            "engine": 1,
        },
    ),
}
STATISTICS_TYPE_BYTE = 9

ENCODED_BY_HAND = [
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
    (ReplaceRequest(id=7, order_id=5, price=499, volume=45), "0f 07000000 05000000 f301 2d00"),
    (Replaced(id=7, price=499, volume=45), "10 07000000 f301 2d00"),
    (CancelRequest(id=7, order_id=5), "11 07000000 05000000"),
    (
        MarketTrade(instrument=0, sequence=258, read_ns=256, price=499, volume=45),
        "18 0000 0201000000000000 0001000000000000 f301 2d00",
    ),
    (
        MarketQuote(instrument=1, sequence=3, read_ns=256, bid=450, ask=549),
        "19 0100 0300000000000000 0001000000000000 c201 2502",
    ),
]


def messages_of(kind: type[Message]) -> st.SearchStrategy[Message]:
    """Make messages of this type, with every value for which its layout has room."""
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
def test_type_byte_size_and_fields_follow_the_specification(kind):
    specified = SPECIFIED[kind]
    layout = LAYOUTS[kind]
    assert layout.code == specified.type_byte
    assert layout.size == specified.size
    assert list(kind._fields) == list(specified.widths)
    assert {name: layout.dtype[name].itemsize for name in specified.widths} == specified.widths
    assert layout.dtype.itemsize == specified.size
    encoded = encode(kind(*[0] * len(specified.widths)))
    assert encoded[0] == specified.type_byte
    assert len(encoded) == specified.size


def test_the_specification_has_every_type_of_message():
    type_bytes = {specified.type_byte: kind for kind, specified in SPECIFIED.items()}
    type_bytes[STATISTICS_TYPE_BYTE] = Statistics
    assert type_bytes == TYPES


@pytest.mark.parametrize(("message", "expected"), ENCODED_BY_HAND, ids=lambda value: type(value).__name__)
def test_fields_are_packed_and_little_endian(message, expected):
    assert encode(message) == bytes.fromhex(expected)
    assert decode(bytes.fromhex(expected)) == message


def test_a_statistics_record_fills_its_frame():
    document = b'{"kind": "end"}'
    assert encode(Statistics(document)) == b"\x09" + document
    assert decode(b"\x09" + document) == Statistics(document)
    assert decode(b"\x09") == Statistics(b"")


@pytest.mark.parametrize("kind", LAYOUTS, ids=lambda kind: kind.__name__)
def test_every_message_is_decoded_as_it_was_encoded(kind):
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
def test_an_array_of_records_has_the_same_fields(kind):
    @given(st.lists(messages_of(kind), min_size=1, max_size=5))
    def reads_the_same(messages):
        table = np.frombuffer(joined(messages), LAYOUTS[kind].dtype)
        for row, message in zip(table.tolist(), messages, strict=True):
            _type_byte, *fields = row
            assert fields == list(message)
        assert (table["type"] == LAYOUTS[kind].code).all()

    reads_the_same()


@pytest.mark.parametrize("kind", FIXED_KINDS, ids=lambda kind: kind.__name__)
def test_a_value_wider_than_its_field_is_refused(kind):
    widths = SPECIFIED[kind].widths
    for name, width in widths.items():
        for value in (2 ** (8 * width), -1):
            fields = dict.fromkeys(widths, 0)
            fields[name] = value
            with pytest.raises(struct.error):
                encode(kind(**fields))


@given(FIXED_MESSAGES, st.none() | messages_of(Statistics))
def test_joined_records_are_decoded_in_order(messages, statistics):
    if statistics is not None:  # a statistics record is the last, since it fills its frame
        messages = [*messages, statistics]
    assert list(decode_all(joined(messages))) == messages


@given(FIXED_MESSAGES)
def test_a_decoded_record_s_end_is_the_next_record_s_start(messages):
    data = joined(messages)
    offset = 0
    for message in messages:
        decoded, end = decode_record(data, offset)
        assert decoded == message
        assert end - offset == len(encode(message))
        offset = end
    with pytest.raises(MalformedMessage) as nothing_left:
        decode_record(data, offset)
    assert nothing_left.value.offset == len(data)


def decoded_up_to_an_error(data: bytes) -> tuple[list[Message], MalformedMessage | None]:
    """Decode the messages up to the first error. Returns both; the error is None if there is none."""
    messages = []
    try:
        for message in decode_all(data):
            messages.append(message)
    except MalformedMessage as error:
        return messages, error
    return messages, None


@given(st.binary(max_size=80) | st.builds(lambda m, tail: joined(m) + tail, FIXED_MESSAGES, st.binary(max_size=20)))
def test_arbitrary_bytes_are_messages_up_to_the_error_s_offset(data):
    messages, error = decoded_up_to_an_error(data)
    if error is None:
        assert joined(messages) == data
        return
    assert joined(messages) == data[: error.offset]
    assert error.offset < len(data)
    assert str(error).endswith(f"at offset {error.offset}")
    with pytest.raises(MalformedMessage):
        decode_record(data, error.offset)


@given(FIXED_MESSAGES.filter(len), st.data())
def test_a_changed_byte_does_not_affect_earlier_records(messages, data):
    frame = bytearray(joined(messages))
    at = data.draw(st.integers(0, len(frame) - 1))
    frame[at] = data.draw(st.integers(0, 255))
    ends = np.cumsum([len(encode(message)) for message in messages])
    records_before = int(np.searchsorted(ends, at, side="right"))
    end_of_records_before = len(joined(messages[:records_before]))
    decoded, error = decoded_up_to_an_error(bytes(frame))
    assert decoded[:records_before] == messages[:records_before]
    assert error is None or error.offset >= end_of_records_before


@given(st.binary(max_size=80))
def test_reading_arbitrary_bytes_never_raises(frame):
    try:
        expected = decode(frame)
    except MalformedMessage:
        expected = None
    message = read(frame)
    if expected is None and isinstance(message, Hello):
        assert message.version != PROTOCOL_VERSION
    else:
        assert message == expected


@pytest.mark.parametrize("kind", FIXED_KINDS, ids=lambda kind: kind.__name__)
def test_a_truncated_record_is_refused_at_its_start(kind):
    message = kind(*[0] * len(kind._fields))
    if kind is Hello:
        message = message._replace(version=PROTOCOL_VERSION)
    whole = encode(message)
    before = encode(Confirmation(1))
    for length in range(1, len(whole)):
        reason = f"{len(whole)} bytes of {kind.__name__}, only {length} left"
        with pytest.raises(MalformedMessage, match=reason) as refused:
            list(decode_all(before + whole[:length]))
        assert refused.value.offset == len(before)
        assert read(whole[:length]) is None


def test_an_unknown_type_byte_is_reported_with_its_offset():
    before = encode(Quote(bid=1, ask=2))
    known_codes = {*range(1, 20), *range(24, 30)}
    for code in sorted(set(range(256)) - set(known_codes)):
        messages, error = decoded_up_to_an_error(before + bytes([code]) * 40)
        assert messages == [Quote(bid=1, ask=2)]
        assert error.offset == len(before)
        assert error.reason == f"unknown type byte {code}"


def test_bytes_after_the_only_record_of_a_frame_are_refused():
    with pytest.raises(MalformedMessage, match="1 bytes behind Quote at offset 5"):
        decode(encode(Quote(bid=1, ask=2)) + b"\x00")
    assert read(encode(Confirmation(1)) * 2) is None


def test_an_empty_frame_is_no_message():
    with pytest.raises(MalformedMessage, match="no record at offset 0"):
        decode(b"")
    assert read(b"") is None
    assert list(decode_all(b"")) == []
