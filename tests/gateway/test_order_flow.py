"""The seeded order stream: the formula of its docstring, in plain integers, against the compiled kernel."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from plain_bits import STEP, U64, bits, mix, orders_key

from exchange.messages import LAYOUTS, Order, decode_all
from exchange.settings import RunSettings
from gateway.order_flow import ORDER_BYTES, OrderFlow
from transports.frames import FrameBatch

PRICES = (450, 549)
MANY = 200_000

SEEDS = st.integers(0, U64 - 1)
IDS = st.integers(1, 2**32 - 1)


def order_by_formula(seed: int, order_id: int, low: int, high: int) -> Order:
    z = bits(orders_key(seed), order_id)
    return Order(
        id=order_id,
        side=1 + (z >> 63),
        price=low + ((z % 2**32) * (high - low + 1) >> 32),
        volume=1 + (((z >> 32) % 2**31) * 100 >> 31),
    )


def table_of(seed: int, count: int, prices: tuple[int, int] = PRICES) -> np.ndarray:
    return np.frombuffer(OrderFlow(seed, prices).records(1, count), LAYOUTS[Order].dtype)


def test_vectors_of_seed_7():
    assert list(decode_all(OrderFlow(7, PRICES).records(1, 3))) == [
        Order(id=1, side=2, price=499, volume=45),
        Order(id=2, side=2, price=470, volume=30),
        Order(id=3, side=2, price=529, volume=10),
    ]


def test_the_finalizer_is_that_of_splitmix64():
    # SplitMix64 from state 0, as its authors' program prints it
    assert [mix(k * STEP % U64) for k in (1, 2, 3)] == [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]


@given(SEEDS, IDS)
def test_an_order_follows_from_seed_and_id_alone(seed, order_id):
    [order] = decode_all(OrderFlow(seed, PRICES).records(order_id, 1))
    assert order == order_by_formula(seed, order_id, *PRICES)


@given(SEEDS, IDS, st.tuples(st.integers(0, 65_535), st.integers(0, 65_535)).map(sorted))
def test_any_range_of_prices_follows_the_same_formula(seed, order_id, prices):
    low, high = prices
    [order] = decode_all(OrderFlow(seed, (low, high)).records(order_id, 1))
    assert order == order_by_formula(seed, order_id, low, high)
    assert low <= order.price <= high


@given(SEEDS, st.integers(1, 2**32 - 200), st.lists(st.integers(1, 40), min_size=1, max_size=5))
def test_batch_sizes_change_nothing(seed, first_id, counts):
    flow, batch, sent, at = OrderFlow(seed, PRICES), FrameBatch(64), b"", first_id
    for count in counts:
        flow.fill(batch, at, count)
        sent += batch.span(0, batch.count).tobytes()
        at += count
    assert sent == OrderFlow(seed, PRICES).records(first_id, sum(counts))


@given(st.integers(1, 1_000), st.integers(1, 1_000))
def test_packing_moves_the_frames_boundaries_and_nothing_else(packing, count):
    batch = FrameBatch(1_024)
    OrderFlow(3, PRICES, packing).fill(batch, 1, count)
    assert batch.span(0, batch.count).tobytes() == OrderFlow(3, PRICES).records(1, count)
    whole, rest = divmod(count, packing)
    lengths = np.diff(batch.offsets[: batch.count + 1]).tolist()
    assert batch.offsets[0] == 0
    assert lengths == [packing * ORDER_BYTES] * whole + ([rest * ORDER_BYTES] if rest else [])


def test_a_batch_is_filled_anew_each_time():
    flow, batch = OrderFlow(1, PRICES, packing=3), FrameBatch(64)
    flow.fill(batch, 1, 30)
    flow.fill(batch, 31, 4)
    assert [len(frame) for frame in batch] == [3 * ORDER_BYTES, ORDER_BYTES]
    assert b"".join(batch) == flow.records(31, 4)


def test_settings_say_seed_prices_and_packing():
    settings = RunSettings(seed=9, prices=(10, 20), packing=5)
    batch = FrameBatch(16)
    OrderFlow.of(settings).fill(batch, 1, 7)
    assert b"".join(batch) == OrderFlow(9, (10, 20)).records(1, 7)
    assert batch.count == 2


def test_ids_count_from_one_without_a_gap():
    assert (table_of(5, MANY)["id"] == np.arange(1, MANY + 1)).all()
    assert (table_of(5, 10)["type"] == 1).all()


@pytest.mark.parametrize("seed", [0, 1, 7, U64 - 1])
def test_sides_prices_and_volumes_are_uniform_over_their_whole_range(seed):
    table = table_of(seed, MANY)
    for field, low, high in (("side", 1, 2), ("price", 450, 549), ("volume", 1, 100)):
        values, counts = np.unique(table[field], return_counts=True)
        assert values.tolist() == list(range(low, high + 1))
        expected = MANY / len(values)
        chi_squared = ((counts - expected) ** 2 / expected).sum()
        freedom = len(values) - 1
        assert chi_squared < freedom + 6 * math.sqrt(2 * freedom)


def test_side_price_and_volume_know_nothing_of_each_other_or_of_the_order_before():
    table = table_of(11, MANY)
    columns = [table[field].astype(float) for field in ("side", "price", "volume")]
    columns += [[*column[1:].tolist(), 0.0] for column in columns[:3]]
    correlation = np.corrcoef(columns)
    assert np.abs(correlation - np.eye(6)).max() < 6 / math.sqrt(MANY)


def test_two_seeds_are_two_streams():
    same = (table_of(1, MANY)["price"] == table_of(2, MANY)["price"]).mean()
    assert same == pytest.approx(1 / 100, abs=0.002)


def test_one_price_is_a_range_too():
    assert set(table_of(1, 1_000, (500, 500))["price"].tolist()) == {500}


def test_the_highest_ids_have_orders_too():
    last = 2**32 - 1
    orders = list(decode_all(OrderFlow(1, PRICES).records(last - 2, 3)))
    assert orders == [order_by_formula(1, order_id, *PRICES) for order_id in range(last - 2, last + 1)]
