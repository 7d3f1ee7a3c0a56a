"""The seeds of instruments, by their formula in plain integers, and their shares of the orders."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from plain_bits import U64, bits, purpose_key

from exchange.allowed import BadSetting
from exchange.settings import RunSettings
from gateway.seeds import instrument_orders, instrument_seed, settings_of_gateway, settings_of_pair

INSTRUMENTS = 4


@given(st.integers(0, U64 - 1), st.integers(1, 10**6))
def test_an_instrument_s_seed_follows_the_formula(seed: int, instrument: int) -> None:
    assert instrument_seed(seed, instrument) == bits(purpose_key(seed, INSTRUMENTS), instrument) >> 1


def test_no_two_instruments_of_two_neighbouring_seeds_share_a_seed() -> None:
    seeds = [instrument_seed(seed, instrument) for seed in (1, 2) for instrument in range(1, 10_001)]
    assert len(set(seeds)) == len(seeds)
    assert all(0 <= seed < 2**63 for seed in seeds)


@given(st.integers(1, 300), st.integers(0, 10**12))
def test_shares_add_up_to_all_orders_and_differ_by_one_at_most(instruments: int, orders: int) -> None:
    shares = [instrument_orders(orders, instruments, instrument) for instrument in range(1, instruments + 1)]
    assert sum(shares) == orders
    assert max(shares) - min(shares) <= 1


def test_the_first_pair_has_the_run_s_seed_and_others_an_instrument_s_seed() -> None:
    settings = RunSettings(seed=7)
    assert settings_of_pair(settings, 1) is settings
    assert settings_of_pair(settings, 3).seed == instrument_seed(7, 3)


@given(
    gateways=st.integers(2, 40),
    orders_per_s=st.floats(0.001, 1e8),
    orders=st.integers(1, 10**6),
    window=st.integers(1, 99),
)
def test_the_shares_of_all_gateways_are_allowed_and_add_up(
    gateways: int, orders_per_s: float, orders: int, window: int
) -> None:
    try:
        settings = RunSettings(
            gateways=gateways,
            orders_per_s=orders_per_s,
            orders=orders,
            window=window,
            cpus={f"gateway.{gateways}": 1, "gateway": 0},
        )
    except BadSetting:
        return
    shares = [settings_of_gateway(settings, gateway) for gateway in range(1, gateways + 1)]
    assert sum(share.orders or 0 for share in shares) == orders
    assert sum(share.orders_per_s or 0.0 for share in shares) == pytest.approx(orders_per_s)
