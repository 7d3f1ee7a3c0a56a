"""Valid bytes of messages and records, and `damaged`, which damages valid bytes.

The damage changes, removes, inserts or doubles bytes, cuts them off, or copies some from another valid example.
"""

from __future__ import annotations

from hypothesis import strategies as st

from exchange.messages import LAYOUTS, Order, Quote, Statistics, Throughput, Timestamp, Trade, encode
from exchange.meters import Source
from exchange.records import RecordWriter
from exchange.session import Terms

RUN = 0xFEED
ORDERS = b"".join(encode(Order(number, 1, 500, 10)) for number in range(1, 9))
RECORD = RecordWriter(RUN, "gateway")
TRAFFIC = {"second": 1, "orders_sent": 2, "orders_answered": 2, "messages_received": 5}
BUCKETS = {
    "second": 1,
    "clock": "due",
    "last_order": False,
    "count": 2,
    "sum_ns": 9,
    "min_ns": 4,
    "max_ns": 5,
    "bucket": [3, 4],
    "bucket_count": [1, 1],
}
LINES = [RECORD.document("traffic", TRAFFIC), RECORD.document("completion", BUCKETS), RECORD.document("end", {})]
TERMS = Terms(RUN, "price-time", 1, 999)
HELLO = TERMS.hello(Source.GATEWAY)
FRAMES = [
    encode(HELLO),
    encode(Throughput(1, 2)),
    encode(Timestamp(2, 1, 1)),
    encode(Trade(1, 500, 1)),
    encode(Quote(bid=1, ask=2)),
    *(encode(Statistics(line)) for line in LINES),
]
EVERY_MESSAGE = [encode(record(*[1] * len(record._fields))) for record in LAYOUTS if record is not Statistics]
"""A record of each type, whose fields are 1. Statistics have no fields."""
HARD_CASES = [
    b"a=" + b"[" * 3000,  # deep nesting
    b"[" * 100_000,
    b'{"a":' * 100_000,
    b"\xff\xfe",
    b"\0" * 64,
    b"1e999999",
    b"-" * 40,
]
"""Bytes with which decoders have failed."""
INSERTED = [b"", b"\0", b"\xff", b"null", b"-1", b'"x"', b"[]", b"{}", b"1e400"]


@st.composite
def damaged(draw: st.DrawFn, *valid: bytes) -> bytes:
    """Draw a valid example with up to four damages; in a quarter of the cases arbitrary bytes or a hard case."""
    is_arbitrary = draw(st.integers(0, 3)) == 0
    if is_arbitrary:
        return draw(st.binary(max_size=200) | st.sampled_from(HARD_CASES))
    data = draw(st.sampled_from(valid))
    for _ in range(draw(st.integers(0, 4))):
        begin, end = sorted((draw(st.integers(0, len(data))), draw(st.integers(0, len(data)))))
        doubled = data[begin:end] * 2
        other = draw(st.sampled_from(valid))
        piece = draw(st.sampled_from([*INSERTED, doubled]) | st.binary(max_size=9) | st.just(other[begin:end]))
        # The piece is inserted, overwrites as many bytes, or replaces the bytes from begin to end.
        rest = draw(st.sampled_from([begin, begin + len(piece), end]))
        data = data[:begin] + piece + data[rest:]
    return data
