"""Due times of each kind of arrivals: their formulas in docs/workload.md, their rates and their randomness."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import accumulate

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from plain_bits import U64, bits, purpose_key
from schedules import KINDS, PERIOD_NS, RATE, source, written

from exchange.settings import RunSettings
from gateway.due_times import NEVER_NS, Poisson, due_times_of


@given(st.sampled_from(KINDS), st.lists(st.integers(1, 900), min_size=1, max_size=12), st.integers(0, U64 - 1))
def test_the_sizes_of_blocks_change_no_due_time(arrivals, counts, seed):
    orders = sum(counts)
    in_blocks = written(source(arrivals, orders, seed=seed), *counts)
    in_one_block = written(source(arrivals, orders, seed=seed), orders)
    assert (in_blocks == in_one_block).all()


@pytest.mark.parametrize("arrivals", KINDS)
def test_due_times_start_at_zero_and_never_decrease(arrivals):
    due = written(source(arrivals), 10_000)
    assert due[0] == 0
    assert (np.diff(due) >= 0).all()


@pytest.mark.parametrize("arrivals", KINDS)
def test_due_times_never_exceed_the_largest_time(arrivals):
    due = written(source(arrivals, orders=2**32 - 1, orders_per_s=0.001), 3)
    assert (due <= NEVER_NS).all()
    longest_run = source("bursts:1000000", orders=2**32 - 1, orders_per_s=0.001)
    last_due_times = written(longest_run, 5, earlier=2**32 - 10)
    assert set(last_due_times.tolist()) == {NEVER_NS}


def test_at_rate_max_there_are_no_due_times():
    assert due_times_of(RunSettings(orders_per_s=None)) is None


@given(st.floats(0.5, 1e8), st.integers(1, 3_000))
def test_at_a_fixed_rate_orders_are_due_a_period_apart(orders_per_s, orders):
    """Order i is due i - 1 periods after the start."""
    due = written(source("fixed", orders, orders_per_s), orders)
    assert due.tolist() == [int((order_id - 1) * (1e9 / orders_per_s)) for order_id in range(1, orders + 1)]


@pytest.mark.parametrize("burst", [1, 7, 100, 2_000])
def test_bursts_are_whole_and_keep_the_mean_rate(burst):
    due_times = source(f"bursts:{burst}")
    due = written(due_times, 10_000)
    times, sizes = np.unique(due, return_counts=True)
    assert set(sizes[:-1].tolist()) <= {burst}
    assert due_times.at_once == sizes.max() == burst
    assert (np.diff(times) == burst * PERIOD_NS).all()


def test_a_ramp_rises_evenly_to_the_offered_rate():
    orders = 44_000  # 10 s at a mean of 4,400/s
    due = written(source("ramp:0.1..1", orders), orders)
    per_s = np.bincount(due // 10**9)
    expected_per_s = [800 + 7_200 * (second + 0.5) / 10 for second in range(10)]  # from 800/s to 8,000/s
    assert per_s.tolist() == pytest.approx(expected_per_s, abs=1)
    assert 1e9 / np.diff(due[:100]).mean() == pytest.approx(0.1 * RATE, rel=0.1)
    assert 1e9 / np.diff(due[-100:]).mean() == pytest.approx(RATE, rel=0.01)


@pytest.mark.parametrize("shares", [(0.1, 1.0), (1.0, 0.25), (0.5, 0.5), (0.001, 0.002)])
def test_the_orders_of_a_ramp_are_the_area_under_its_rate(shares):
    first, last = (Fraction(share) for share in shares)
    orders = 5_000
    rate = Fraction(RATE)
    length_s = orders / (rate * (first + last) / 2)
    due = written(source(f"ramp:{shares[0]}..{shares[1]}", orders), orders)
    for order_id in (1, 2, 100, 2_500, orders):
        t = Fraction(int(due[order_id - 1]), 10**9)
        area = rate * (first * t + (last - first) * t * t / (2 * length_s))
        assert float(area) == pytest.approx(order_id - 1, abs=1e-4)


def minus_log2_by_formula(z: int) -> int:
    """Return -log2(z / 2^64) in units of 2^-24: the whole part by counting zeros, the fraction by squaring."""
    z |= 1
    zeros = 64 - z.bit_length()
    m = (z << zeros) >> 32
    fraction = 0
    for _ in range(24):
        m = m * m >> 31
        carry = m >> 32
        m >>= carry
        fraction = fraction << 1 | carry
    return ((zeros + 1) << 24) - fraction


@given(st.integers(0, U64 - 1))
def test_the_logarithm_in_whole_numbers_is_accurate(z):
    assert minus_log2_by_formula(z) / 2**24 == pytest.approx(64 - math.log2(z | 1), abs=2e-7)


@given(st.integers(0, U64 - 1), st.floats(0.5, 1e7))
def test_poisson_arrivals_follow_the_formula(seed, orders_per_s):
    key = purpose_key(seed, purpose=1)
    gaps = [minus_log2_by_formula(bits(key, order_id)) for order_id in range(1, 20)]
    scale_ns = 1e9 / orders_per_s * math.log(2) / 2**24
    expected = [int(total * scale_ns) for total in accumulate(gaps, initial=0)]
    assert written(source("poisson", orders_per_s=orders_per_s, seed=seed), 20).tolist() == expected


@pytest.mark.parametrize("seed", [1, 2, U64 - 1])
def test_gaps_between_poisson_arrivals_are_exponential(seed):
    gaps_ns = np.diff(written(source("poisson", seed=seed), 100_000))
    expected = 1 - np.exp(-np.sort(gaps_ns) / PERIOD_NS)
    shares = np.linspace(0, 1, len(gaps_ns) + 1)
    distance_below = (expected - shares[:-1]).max()
    distance_above = (shares[1:] - expected).max()
    limit = 1.628 / math.sqrt(len(gaps_ns))  # Kolmogorov-Smirnov test at a level of 1 %
    assert max(distance_below, distance_above) < limit
    assert gaps_ns.mean() == pytest.approx(PERIOD_NS, rel=4 / math.sqrt(100_000))
    assert abs(np.corrcoef(gaps_ns[1:], gaps_ns[:-1])[0, 1]) < 4 / math.sqrt(100_000)


def test_poisson_arrivals_of_a_seed_scale_with_the_period():
    slow = written(Poisson(period_ns=1e6, seed=3), 1_000)
    fast = written(Poisson(period_ns=1e3, seed=3), 1_000)
    assert np.abs(slow / 1_000 - fast).max() <= 1


def test_poisson_arrivals_depend_on_the_seed():
    one = written(source("poisson", seed=1), 1_000)
    other = written(source("poisson", seed=2), 1_000)
    assert (one != other).sum() == 999, "all but the first, which is due at the start"
