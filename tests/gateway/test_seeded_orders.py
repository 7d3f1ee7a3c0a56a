"""The seeded order stream: the compiled kernels against the docstring's formulas in plain integers."""

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
SAMPLE_ORDERS = 200_000

SEEDS = st.integers(0, U64 - 1)
IDS = st.integers(1, 2**32 - 1)


def order_by_formula(seed: int, order_id: int, low: int, high: int) -> Order:
    random_bits = bits(orders_key(seed), order_id)
    low_bits = random_bits % 2**32
    middle_bits = (random_bits >> 32) % 2**31
    return Order(
        id=order_id,
        side=1 + (random_bits >> 63),
        price=low + (low_bits * (high - low + 1) >> 32),
        volume=1 + (middle_bits * 100 >> 31),
    )


def table_of(seed: int, count: int, prices: tuple[int, int] = PRICES) -> np.ndarray:
    return np.frombuffer(SeededOrders(seed, prices).records(1, count), LAYOUTS[Order].dtype)


def test_the_first_orders_of_seed_7_are_as_documented():
    assert list(decode_all(SeededOrders(7, PRICES).records(1, 3))) == [
        Order(id=1, side=2, price=499, volume=45),
        Order(id=2, side=2, price=470, volume=30),
        Order(id=3, side=2, price=529, volume=10),
    ]


def test_the_mix_function_agrees_with_splitmix64():
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
    assert (table_of(5, SAMPLE_ORDERS)["id"] == np.arange(1, SAMPLE_ORDERS + 1)).all()
    assert (table_of(5, 10)["type"] == 1).all()


@pytest.mark.parametrize("seed", [0, 1, 7, U64 - 1])
def test_sides_prices_and_volumes_are_uniform_over_their_whole_range(seed):
    table = table_of(seed, SAMPLE_ORDERS)
    ranges = {"side": (1, 2), "price": (450, 549), "volume": (1, 100)}
    for field, (low, high) in ranges.items():
        values, counts = np.unique(table[field], return_counts=True)
        assert values.tolist() == list(range(low, high + 1))
        expected = SAMPLE_ORDERS / len(values)
        chi_squared = ((counts - expected) ** 2 / expected).sum()
        degrees_of_freedom = len(values) - 1
        standard_deviation = math.sqrt(2 * degrees_of_freedom)
        assert chi_squared < degrees_of_freedom + 6 * standard_deviation


def test_side_price_and_volume_are_independent():
    """They are independent of each other and of the next order."""
    table = table_of(11, SAMPLE_ORDERS)
    columns = [table[field].astype(float) for field in ("side", "price", "volume")]
    next_orders = [np.roll(column, -1) for column in columns]
    correlation = np.corrcoef([*columns, *next_orders])
    assert np.abs(correlation - np.eye(6)).max() < 6 / math.sqrt(SAMPLE_ORDERS)


def test_streams_of_two_seeds_agree_only_by_chance():
    same = (table_of(1, SAMPLE_ORDERS)["price"] == table_of(2, SAMPLE_ORDERS)["price"]).mean()
    assert same == pytest.approx(1 / 100, abs=0.002)


def test_a_range_of_one_price_is_allowed():
    assert set(table_of(1, 1_000, (500, 500))["price"].tolist()) == {500}


def test_the_highest_ids_have_orders_by_the_formula():
    last = 2**32 - 1
    orders = list(decode_all(SeededOrders(1, PRICES).records(last - 2, 3)))
    assert orders == [order_by_formula(1, order_id, *PRICES) for order_id in range(last - 2, last + 1)]


def height(key: int, shift: int, corner: int) -> int:
    """Return the height of a line at a corner; corners are 2^shift orders apart."""
    return bits(key, (shift << 32) + corner) >> 32


def line_by_formula(key: int, shift: int, order_id: int) -> int:
    """Return the height of a line at an order, between the two corners beside the order."""
    corner, offset = divmod(order_id, 2**shift)
    left = height(key, shift, corner)
    right = height(key, shift, corner + 1)
    return (left * (2**shift - offset) + right * offset) >> shift


def price_by_formula(seed: int, order_id: int, low: int, high: int) -> int:
    """Return the price around a mid that moves."""
    mid_key = purpose_key(seed, purpose=2)
    noise_key = purpose_key(seed, purpose=3)
    slow = line_by_formula(mid_key, 16, order_id)
    medium = line_by_formula(mid_key, 12, order_id)
    fast = line_by_formula(mid_key, 8, order_id)
    mid = (16 * slow + 4 * medium + fast) // 21
    random_bits = bits(noise_key, order_id)
    noise = sum(random_bits >> shift & 0xFFFF for shift in (0, 16, 32, 48)) << 14
    return low + ((high - low + 1) * (mid + noise) >> 33)


@given(SEEDS, IDS, st.tuples(st.integers(0, 65_535), st.integers(0, 65_535)).map(sorted))
def test_normal_prices_follow_the_formula_and_stay_in_range(seed, order_id, prices):
    low, high = prices
    [order] = decode_all(SeededOrders(seed, (low, high), "normal").records(order_id, 1))
    assert order.price == price_by_formula(seed, order_id, low, high)
    assert low <= order.price <= high


@pytest.mark.parametrize("model", ["uniform", "normal", "wide"])
def test_a_price_model_changes_only_the_prices(model):
    usual = table_of(3, 1_000)
    records = SeededOrders.of(RunSettings(seed=3, price_model=model)).records(1, 1_000)
    table = np.frombuffer(records, LAYOUTS[Order].dtype)
    for field in ("id", "side", "volume"):
        assert (table[field] == usual[field]).all()
    has_usual_prices = (table["price"] == usual["price"]).all()
    assert has_usual_prices == (model == "uniform")


def test_normal_prices_are_close_to_a_normal_distribution_around_the_mid():
    """Within 16 orders the mid hardly moves, so neighbours differ by their noise alone."""
    prices = around_mid(SAMPLE_ORDERS)
    differences = (prices[::2] - prices[1::2]) / math.sqrt(2)
    assert differences.std() == pytest.approx(0.0722 * 10_000, rel=0.02)
    assert np.abs(differences).max() < 0.5 * 10_000
    deviations = np.abs(differences) / differences.std()
    assert (deviations < 1).mean() == pytest.approx(0.683, abs=0.01)
    assert (deviations < 2).mean() == pytest.approx(0.954, abs=0.01)


def test_the_mid_moves_more_over_more_orders():
    mids = around_mid(SAMPLE_ORDERS).reshape(-1, 64).mean(axis=1)
    short, medium, long = (np.abs(mids[gap:] - mids[:-gap]).mean() for gap in (4, 64, 1_024))
    assert 2 * short < medium < long / 2
    assert mids.max() - mids.min() > 0.15 * 10_000


def around_mid(count: int) -> np.ndarray:
    """Return the normal prices of the first `count` orders of seed 5, within 1..10,000."""
    table = np.frombuffer(SeededOrders(5, (1, 10_000), "normal").records(1, count), LAYOUTS[Order].dtype)
    return table["price"].astype(float)


def test_wide_prices_are_uniform_over_all_prices_of_the_book():
    settings = RunSettings(seed=2, price_model="wide", max_price=50)
    records = SeededOrders.of(settings).records(1, 10_000)
    assert records == SeededOrders(2, (1, 50)).records(1, 10_000)
    assert settings.prices == (1, 50)
