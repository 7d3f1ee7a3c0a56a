"""Valid bytes of messages and records, and what `damaged` makes of them.

It changes, leaves out, puts in or doubles bytes, cuts them off, or takes some from another valid one.
"""

from __future__ import annotations

from hypothesis import strategies as st

from exchange.measurements import Source
from exchange.messages import Order, Quote, Statistics, Throughput, Timestamp, Trade, encode
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
HELLO = Terms(RUN, "price-time", 1, 999).hello(Source.GATEWAY)
FRAMES = [encode(each) for each in (HELLO, Throughput(1, 2), Timestamp(2, 1, 1), Trade(1, 500, 1), Quote(1, 2))]
FRAMES += [encode(Statistics(line)) for line in LINES]
DEEP = [b"a=" + b"[" * 3000, b"[" * 100_000, b'{"a":' * 100_000, b"\xff\xfe", b"\0" * 64, b"1e999999", b"-" * 40]
"""What decoders have stumbled over."""


@st.composite
def damaged(draw: st.DrawFn, *valid: bytes) -> bytes:
    """Arbitrary bytes, or one of the valid ones with some damage."""
    if not draw(st.integers(0, 3)):
        return draw(st.binary(max_size=200) | st.sampled_from(DEEP))
    data = draw(st.sampled_from(valid))
    for _ in range(draw(st.integers(0, 4))):
        begin, end = sorted((draw(st.integers(0, len(data))), draw(st.integers(0, len(data)))))
        piece = draw(
            st.sampled_from([b"", data[begin:end] * 2, b"\0", b"\xff", b"null", b"-1", b'"x"', b"[]", b"{}", b"1e400"])
            | st.binary(max_size=9)
            | st.sampled_from(valid).map(lambda other: other[begin:end])  # noqa: B023
        )
        data = data[:begin] + piece + data[draw(st.sampled_from([begin, begin + len(piece), end])) :]
    return data
