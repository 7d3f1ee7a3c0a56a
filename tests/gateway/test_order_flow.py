"""Orders into batches: packing and batch sizes move the boundaries, and no byte."""

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
def test_batch_sizes_change_nothing(seed, first_id, counts, price_model):
    orders = SeededOrders(seed, PRICES, price_model)
    flow, batch, sent, at = OrderFlow(orders), FrameBatch(64), b"", first_id
    for count in counts:
        flow.fill(batch, at, count)
        sent += batch.span(0, batch.count).tobytes()
        at += count
    assert sent == orders.records(first_id, sum(counts))


@given(st.integers(1, 1_000), st.integers(1, 1_000))
def test_packing_moves_the_frames_boundaries_and_nothing_else(packing, count):
    batch = FrameBatch(1_024)
    OrderFlow(SeededOrders(3, PRICES), packing).fill(batch, 1, count)
    assert batch.span(0, batch.count).tobytes() == SeededOrders(3, PRICES).records(1, count)
    whole, rest = divmod(count, packing)
    lengths = np.diff(batch.offsets[: batch.count + 1]).tolist()
    assert batch.offsets[0] == 0
    assert lengths == [packing * ORDER_BYTES] * whole + ([rest * ORDER_BYTES] if rest else [])


def test_a_batch_is_filled_anew_each_time():
    orders, batch = SeededOrders(1, PRICES), FrameBatch(64)
    flow = OrderFlow(orders, packing=3)
    flow.fill(batch, 1, 30)
    flow.fill(batch, 31, 4)
    assert [len(frame) for frame in batch] == [3 * ORDER_BYTES, ORDER_BYTES]
    assert b"".join(batch) == orders.records(31, 4)


def test_settings_say_seed_prices_and_packing():
    settings = RunSettings(seed=9, prices=(10, 20), packing=5)
    batch = FrameBatch(16)
    OrderFlow.of(settings).fill(batch, 1, 7)
    assert b"".join(batch) == SeededOrders(9, (10, 20)).records(1, 7)
    assert batch.count == 2
