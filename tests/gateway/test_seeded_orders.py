"""The seeded order stream: the formulas of the docstrings, in plain integers, against the compiled kernels."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from plain_bits import STEP, U64, bits, mix, orders_key, purpose_key

from exchange.messages import LAYOUTS, Order, decode_all
from exchange.settings import RunSettings
from gateway.seeded_orders import SeededOrders

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
    return np.frombuffer(SeededOrders(seed, prices).records(1, count), LAYOUTS[Order].dtype)


def test_vectors_of_seed_7():
    assert list(decode_all(SeededOrders(7, PRICES).records(1, 3))) == [
        Order(id=1, side=2, price=499, volume=45),
        Order(id=2, side=2, price=470, volume=30),
        Order(id=3, side=2, price=529, volume=10),
    ]


def test_the_finalizer_is_that_of_splitmix64():
    # SplitMix64 from state 0, as its authors' program prints it
    assert [mix(k * STEP % U64) for k in (1, 2, 3)] == [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]


@given(SEEDS, IDS)
def test_an_order_follows_from_seed_and_id_alone(seed, order_id):
    [order] = decode_all(SeededOrders(seed, PRICES).records(order_id, 1))
    assert order == order_by_formula(seed, order_id, *PRICES)


@given(SEEDS, IDS, st.tuples(st.integers(0, 65_535), st.integers(0, 65_535)).map(sorted))
def test_any_range_of_prices_follows_the_same_formula(seed, order_id, prices):
    low, high = prices
    [order] = decode_all(SeededOrders(seed, (low, high)).records(order_id, 1))
    assert order == order_by_formula(seed, order_id, low, high)
    assert low <= order.price <= high


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


def test_side_price_and_volume_are_independent():
    """They are independent of each other and of the order before."""
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
    orders = list(decode_all(SeededOrders(1, PRICES).records(last - 2, 3)))
    assert orders == [order_by_formula(1, order_id, *PRICES) for order_id in range(last - 2, last + 1)]


def height(key: int, shift: int, corner: int) -> int:
    return bits(key, (shift << 32) + corner) >> 32


def price_by_formula(seed: int, order_id: int, low: int, high: int) -> int:
    """Around a mid that moves."""
    mid_key, noise_key = (purpose_key(seed, purpose) for purpose in (2, 3))
    lines = []
    for shift in (16, 12, 8):
        corner, way = divmod(order_id, 2**shift)
        ends = height(mid_key, shift, corner) * (2**shift - way) + height(mid_key, shift, corner + 1) * way
        lines.append(ends >> shift)
    mid = (16 * lines[0] + 4 * lines[1] + lines[2]) // 21
    z = bits(noise_key, order_id)
    noise = sum(z >> at & 0xFFFF for at in (0, 16, 32, 48)) << 14
    return low + ((high - low + 1) * (mid + noise) >> 33)


@given(SEEDS, IDS, st.tuples(st.integers(0, 65_535), st.integers(0, 65_535)).map(sorted))
def test_prices_around_a_mid_follow_the_formula_and_stay_in_range(seed, order_id, prices):
    low, high = prices
    [order] = decode_all(SeededOrders(seed, (low, high), "normal").records(order_id, 1))
    assert order.price == price_by_formula(seed, order_id, low, high)
    assert low <= order.price <= high


@pytest.mark.parametrize("model", ["uniform", "normal", "wide"])
def test_a_price_model_changes_prices_and_nothing_else(model):
    usual = table_of(3, 1_000)
    records = SeededOrders.of(RunSettings(seed=3, price_model=model)).records(1, 1_000)
    table = np.frombuffer(records, LAYOUTS[Order].dtype)
    for field in ("id", "side", "volume"):
        assert (table[field] == usual[field]).all()
    assert (table["price"] == usual["price"]).all() == (model == "uniform")


def test_prices_around_a_mid_are_close_to_a_normal_distribution_around_it():
    """Within 16 orders the mid hardly moves, so neighbours differ by their noise alone."""
    prices = around_mid(MANY)
    differences = (prices[::2] - prices[1::2]) / math.sqrt(2)
    assert differences.std() == pytest.approx(0.0722 * 10_000, rel=0.02)
    assert np.abs(differences).max() < 0.5 * 10_000
    within = [(np.abs(differences) < k * differences.std()).mean() for k in (1, 2)]
    assert within == pytest.approx([0.683, 0.954], abs=0.01)


def test_the_mid_moves_and_the_further_apart_the_more():
    mids = around_mid(MANY).reshape(-1, 64).mean(axis=1)
    moved = [np.abs(mids[gap:] - mids[:-gap]).mean() for gap in (4, 64, 1_024)]
    assert 2 * moved[0] < moved[1] < moved[2] / 2
    assert mids.max() - mids.min() > 0.15 * 10_000


def around_mid(count: int) -> np.ndarray:
    table = np.frombuffer(SeededOrders(5, (1, 10_000), "normal").records(1, count), LAYOUTS[Order].dtype)
    return table["price"].astype(float)


def test_wide_prices_are_uniform_over_all_that_the_book_accepts():
    settings = RunSettings(seed=2, price_model="wide", max_price=50)
    records = SeededOrders.of(settings).records(1, 10_000)
    assert records == SeededOrders(2, (1, 50)).records(1, 10_000)
    assert settings.prices == (1, 50)
