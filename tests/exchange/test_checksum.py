"""The checksum of a direction: one hash over its bytes, wherever they were cut."""

from __future__ import annotations

import numpy as np
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from exchange.checksum import StreamChecksum
from exchange.messages import Confirmation, Quote, encode
from exchange.results import NAME


def as_array(data: bytes) -> np.ndarray:
    return np.frombuffer(data, np.uint8)


@given(st.lists(st.binary(max_size=50), max_size=20))
def test_the_checksum_is_that_of_the_concatenation_however_it_is_cut(parts):
    stream = StreamChecksum()
    for part in parts:
        stream.update(as_array(part))
    whole = b"".join(parts)
    assert stream.value == xxhash.xxh64_intdigest(whole, seed=0)
    assert stream.hex == f"{stream.value:016x}"


def test_a_span_of_a_larger_buffer_counts_alone():
    buffer = as_array(b"before" + b"orders" + b"after").copy()
    stream = StreamChecksum()
    stream.update(buffer[6:12])
    buffer[:] = 0  # a batch is reused as soon as it was counted
    assert stream.value == xxhash.xxh64_intdigest(b"orders")


def test_reading_the_checksum_does_not_end_it():
    stream = StreamChecksum()
    values = [stream.value]
    for part in (b"one", b"two"):
        stream.update(as_array(part))
        values.append(stream.value)
    assert values == [xxhash.xxh64_intdigest(whole) for whole in (b"", b"one", b"onetwo")]


def test_order_matters():
    def checksum(*messages):
        stream = StreamChecksum()
        for message in messages:
            stream.update(as_array(encode(message)))
        return stream.value

    quote, confirmation = Quote(bid=1, ask=2), Confirmation(1)
    assert checksum(quote, confirmation) != checksum(confirmation, quote)


def test_known_values():
    assert NAME == "xxh64"
    assert StreamChecksum().hex == "ef46db3751d8e999"  # XXH64 of nothing, from its own documentation
