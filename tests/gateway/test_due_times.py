"""Due times under each kind of arrivals: the formulas of docs/workload.md in plain Python, rates, chance."""

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
def test_the_sizes_of_the_blocks_change_nothing(arrivals, counts, seed):
    orders = sum(counts)
    in_blocks = written(source(arrivals, orders, seed=seed), *counts)
    assert (in_blocks == written(source(arrivals, orders, seed=seed), orders)).all()


@pytest.mark.parametrize("arrivals", KINDS)
def test_the_first_order_is_due_at_once_and_none_before_the_last(arrivals):
    due = written(source(arrivals), 10_000)
    assert due[0] == 0
    assert (np.diff(due) >= 0).all()


@pytest.mark.parametrize("arrivals", KINDS)
def test_no_time_is_too_far_away_for_a_clock_of_64_bits(arrivals):
    due = written(source(arrivals, orders=2**32 - 1, orders_per_s=0.001), 3)
    assert (due <= NEVER_NS).all()
    late = source("bursts:1000000", orders=2**32 - 1, orders_per_s=0.001)
    last = written(late, 5, earlier=2**32 - 10)  # of the longest run
    assert set(last.tolist()) == {NEVER_NS}


def test_at_rate_max_there_are_no_due_times():
    assert due_times_of(RunSettings(orders_per_s=None)) is None


@given(st.floats(0.5, 1e8), st.integers(1, 3_000))
def test_at_a_fixed_rate_orders_are_due_a_period_apart(orders_per_s, orders):
    """Order i is due i - 1 periods after the start."""
    due = written(source("fixed", orders, orders_per_s), orders)
    assert due.tolist() == [int((order_id - 1) * (1e9 / orders_per_s)) for order_id in range(1, orders + 1)]


@pytest.mark.parametrize("burst", [1, 7, 100, 2_000])
def test_bursts_come_whole_and_at_the_mean_rate(burst):
    due_times = source(f"bursts:{burst}")
    due = written(due_times, 10_000)
    times, sizes = np.unique(due, return_counts=True)
    assert set(sizes[:-1].tolist()) <= {burst}
    assert due_times.at_once == sizes.max() == burst
    assert (np.diff(times) == burst * PERIOD_NS).all()


def test_a_ramp_s_rate_rises_evenly_to_the_offered_one():
    orders = 44_000  # 10 s at a mean of 4,400/s
    due = written(source("ramp:0.1..1", orders), orders)
    per_s = np.bincount(due // 10**9)
    assert per_s.tolist() == pytest.approx([800 + 7_200 * (second + 0.5) / 10 for second in range(10)], abs=1)
    assert 1e9 / np.diff(due[:100]).mean() == pytest.approx(0.1 * RATE, rel=0.1)
    assert 1e9 / np.diff(due[-100:]).mean() == pytest.approx(RATE, rel=0.01)


@pytest.mark.parametrize("shares", [(0.1, 1.0), (1.0, 0.25), (0.5, 0.5), (0.001, 0.002)])
def test_a_ramp_has_offered_the_area_under_its_rate_at_any_time(shares):
    first, last = (Fraction(share) for share in shares)
    orders, rate = 5_000, Fraction(RATE)
    length_s = orders / (rate * (first + last) / 2)
    due = written(source(f"ramp:{shares[0]}..{shares[1]}", orders), orders)
    for order_id in (1, 2, 100, 2_500, orders):
        t = Fraction(int(due[order_id - 1]), 10**9)
        area = rate * (first * t + (last - first) * t * t / (2 * length_s))
        assert float(area) == pytest.approx(order_id - 1, abs=1e-4)


def minus_log2_by_formula(z: int) -> int:
    """In units of 2^-24: an exact number of bits in front, the fraction by squaring."""
    z |= 1
    zeros = 64 - z.bit_length()
    m, fraction = (z << zeros) >> 32, 0
    for _ in range(24):
        m = m * m >> 31
        carry = m >> 32
        m >>= carry
        fraction = fraction << 1 | carry
    return ((zeros + 1) << 24) - fraction


@given(st.integers(0, U64 - 1))
def test_the_logarithm_in_whole_numbers_is_one(z):
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
    expected, shares = 1 - np.exp(-np.sort(gaps_ns) / PERIOD_NS), np.linspace(0, 1, len(gaps_ns) + 1)
    furthest = max((expected - shares[:-1]).max(), (shares[1:] - expected).max())
    assert furthest < 1.628 / math.sqrt(len(gaps_ns)), "Kolmogorov and Smirnov: 1 in 100 is further away"
    assert gaps_ns.mean() == pytest.approx(PERIOD_NS, rel=4 / math.sqrt(100_000))
    assert abs(np.corrcoef(gaps_ns[1:], gaps_ns[:-1])[0, 1]) < 4 / math.sqrt(100_000)


def test_poisson_arrivals_of_a_seed_differ_by_the_period_only():
    """At every rate they are the same multiples of the period."""
    slow, fast = (written(Poisson(period_ns, seed=3), 1_000) for period_ns in (1e6, 1e3))
    assert np.abs(slow / 1_000 - fast).max() <= 1


def test_poisson_arrivals_and_the_orders_have_random_numbers_of_their_own():
    one, other = (written(source("poisson", seed=seed), 1_000) for seed in (1, 2))
    assert (one != other).sum() == 999
