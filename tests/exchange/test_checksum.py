"""The checksum of a direction: a hash of all its bytes, which does not depend on batches."""

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
def test_the_parts_of_a_stream_do_not_change_its_checksum(parts):
    stream = StreamChecksum()
    for part in parts:
        stream.update(as_array(part))
    whole = b"".join(parts)
    assert stream.value == xxhash.xxh64_intdigest(whole, seed=0)
    assert stream.hex == f"{stream.value:016x}"


def test_only_the_given_span_of_a_buffer_is_hashed():
    buffer = as_array(b"before" + b"orders" + b"after").copy()
    stream = StreamChecksum()
    stream.update(buffer[6:12])
    buffer[:] = 0  # the buffer of a batch is reused at once
    assert stream.value == xxhash.xxh64_intdigest(b"orders")


def test_the_checksum_can_be_read_and_updated_again():
    stream = StreamChecksum()
    values = [stream.value]
    for part in (b"one", b"two"):
        stream.update(as_array(part))
        values.append(stream.value)
    assert values == [xxhash.xxh64_intdigest(whole) for whole in (b"", b"one", b"onetwo")]


def test_the_sequence_of_messages_changes_the_checksum():
    def checksum(*messages):
        stream = StreamChecksum()
        for message in messages:
            stream.update(as_array(encode(message)))
        return stream.value

    quote = Quote(bid=1, ask=2)
    confirmation = Confirmation(1)
    assert checksum(quote, confirmation) != checksum(confirmation, quote)


def test_the_checksum_of_nothing_is_that_of_xxh64():
    assert NAME == "xxh64"
    assert StreamChecksum().hex == "ef46db3751d8e999"  # XXH64 of nothing, from its own documentation
