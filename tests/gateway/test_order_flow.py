"""Orders in batches: packing and batch sizes move the frames' boundaries and change no byte."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from plain_bits import U64

from exchange.settings import RunSettings
from exchange.workload import PRICE_MODELS
from gateway.offering import OrderFlow
from gateway.seeded_orders import ORDER_BYTES, SeededOrders
from transports.frames import FrameBatch

PRICES = (450, 549)
SEEDS = st.integers(0, U64 - 1)


@given(
    SEEDS,
    st.integers(1, 2**32 - 200),
    st.lists(st.integers(1, 40), min_size=1, max_size=5),
    st.sampled_from([*PRICE_MODELS]),
)
def test_the_sizes_of_the_batches_change_no_byte(seed, first_id, counts, price_model):
    orders = SeededOrders(seed, PRICES, price_model)
    flow = OrderFlow(orders)
    batch = FrameBatch(64)
    sent = b""
    next_id = first_id
    for count in counts:
        flow.fill(batch, next_id, count)
        sent += batch.span(0, batch.count).tobytes()
        next_id += count
    assert sent == orders.records(first_id, sum(counts))


@given(st.integers(1, 1_000), st.integers(1, 1_000))
def test_packing_moves_the_frames_boundaries_and_nothing_else(packing, count):
    batch = FrameBatch(1_024)
    OrderFlow(SeededOrders(3, PRICES), packing).fill(batch, 1, count)
    assert batch.span(0, batch.count).tobytes() == SeededOrders(3, PRICES).records(1, count)
    whole_packs, rest = divmod(count, packing)
    expected_lengths = [packing * ORDER_BYTES] * whole_packs
    if rest:
        expected_lengths.append(rest * ORDER_BYTES)
    assert batch.offsets[0] == 0
    assert np.diff(batch.offsets[: batch.count + 1]).tolist() == expected_lengths


def test_filling_a_batch_replaces_its_frames():
    orders = SeededOrders(1, PRICES)
    batch = FrameBatch(64)
    flow = OrderFlow(orders, packing=3)
    flow.fill(batch, 1, 30)
    flow.fill(batch, 31, 4)
    assert [len(frame) for frame in batch] == [3 * ORDER_BYTES, ORDER_BYTES]
    assert b"".join(batch) == orders.records(31, 4)


def test_an_order_flow_takes_seed_prices_and_packing_from_settings():
    settings = RunSettings(seed=9, prices=(10, 20), packing=5)
    batch = FrameBatch(16)
    OrderFlow.of(settings).fill(batch, 1, 7)
    assert b"".join(batch) == SeededOrders(9, (10, 20)).records(1, 7)
    assert batch.count == 2
