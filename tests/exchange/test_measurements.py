"""Log buckets against exact integers and against numpy; throughput meters against arithmetic."""

from __future__ import annotations

import math

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import njit

from exchange.log_buckets import log_bucket
from exchange.measurements import (
    BUCKETS,
    BUCKETS_PER_OCTAVE,
    LogBuckets,
    Meter,
    RateMeter,
    bucket_middle_ns,
    bucket_of,
)
from exchange.messages import Throughput

ONE_HOUR_NS = 3_600_000_000_000
WORST_ERROR = 0.003
PROBABILITIES = (0.0, 0.001, 0.25, 0.5, 0.9, 0.99, 0.999, 1.0)
TIMES_NS = st.lists(st.integers(0, ONE_HOUR_NS), max_size=60)

generator = np.random.default_rng(20)
DISTRIBUTIONS = {
    "lognormal": generator.lognormal(12, 1.5, 50_000).astype(np.int64),
    "bimodal": np.concatenate([generator.normal(90_000, 4_000, 30_000), generator.normal(4e7, 1e6, 300)]).astype(int),
    "constant": np.full(1_000, 123_457),
    "heavy tail": (generator.pareto(0.7, 20_000) * 10_000 + 1).astype(np.int64),
    "one value": np.array([77_777]),
    "two values": np.array([1_000, 9_000_000]),
    "three values": np.array([50, 51, 1_000_000_000]),
    "thousand": generator.integers(1, 10**9, 1_000),
}


def buckets_of(values_ns) -> LogBuckets:
    """Counted one by one, apart from the code that counts in a run."""
    counts = np.bincount(bucket_of(values_ns), minlength=BUCKETS) if len(values_ns) else np.zeros(BUCKETS, np.int64)
    return LogBuckets(
        counts.astype(np.int64),
        sum_ns=sum(map(int, values_ns)),
        min_ns=int(min(values_ns, default=0)),
        max_ns=int(max(values_ns, default=0)),
    )


def exact_bucket(value_ns: int) -> int:
    """Floor of 128 log2(value), in integers: log2(v^128) is the length of v^128 in bits."""
    return (max(value_ns, 1) ** BUCKETS_PER_OCTAVE).bit_length() - 1


def assert_same(left: LogBuckets, right: LogBuckets) -> None:
    assert (left.counts == right.counts).all()
    assert (left.count, left.sum_ns) == (right.count, right.sum_ns)
    assert (left.min_ns, left.max_ns) == (right.min_ns, right.max_ns)


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_percentiles_are_those_of_numpy_within_half_a_bucket(name):
    values = DISTRIBUTIONS[name]
    buckets = buckets_of(values)
    for probability in PROBABILITIES:
        # quantile, not percentile: numpy takes 99.9 / 100 for a little more than 0.999
        expected = np.quantile(values, probability, method="inverted_cdf")
        assert buckets.percentile_ns(probability * 100) == pytest.approx(expected, rel=WORST_ERROR)


@given(st.lists(st.integers(1, ONE_HOUR_NS), min_size=1, max_size=30), st.sampled_from(PROBABILITIES))
def test_percentiles_of_small_samples_agree_with_numpy(values, probability):
    """Within half a bucket."""
    expected = np.quantile(values, probability, method="inverted_cdf")
    assert buckets_of(values).percentile_ns(probability * 100) == pytest.approx(expected, rel=WORST_ERROR)


@pytest.mark.parametrize("thousands", [41, 82, 164])
def test_a_percentile_of_whole_thousands_is_at_its_own_rank(thousands):
    """The rank is not rounded up to the one behind it."""
    fast, slow = 999 * thousands, thousands
    buckets = LogBuckets.of(np.repeat([1_000, 1_000_000], [fast, slow]))
    assert buckets.percentile_ns(99.9) == pytest.approx(1_000, rel=WORST_ERROR)


def test_every_whole_nanosecond_lies_in_its_bucket():
    edges = np.unique((2.0 ** (np.arange(42 * BUCKETS_PER_OCTAVE) / BUCKETS_PER_OCTAVE)).astype(np.int64))
    values = np.unique(np.concatenate([edges, edges + 1, np.arange(1, 5_000)]))
    assert bucket_of(values).tolist() == [exact_bucket(value) for value in values.tolist()]


@njit
def compiled_buckets(values_ns):
    buckets = np.empty_like(values_ns)
    for i in range(len(values_ns)):
        buckets[i] = log_bucket(values_ns[i])
    return buckets


def test_compiled_code_counts_a_time_in_the_bucket_that_numpy_does():
    edges = np.unique((2.0 ** (np.arange(46 * BUCKETS_PER_OCTAVE) / BUCKETS_PER_OCTAVE)).astype(np.int64))
    values = np.unique(np.concatenate([edges - 1, edges, edges + 1, [0, 2**62]]))
    assert compiled_buckets(values).tolist() == bucket_of(values).tolist()


@pytest.mark.parametrize("octave", range(1, 45))
def test_a_power_of_two_opens_an_octave(octave):
    opening = octave * BUCKETS_PER_OCTAVE
    assert bucket_of(2**octave) == opening
    # in the highest octaves one ns is less than the doubles there can tell apart
    assert bucket_of(2**octave * (1 - 1e-9)) == opening - 1


def test_nothing_falls_outside_the_buckets():
    assert bucket_of([0, 1]).tolist() == [0, 0]
    assert bucket_of([2**45 - 1, 2**45, 2**62]).tolist() == [BUCKETS - 1] * 3


def test_a_buckets_middle_is_within_the_promised_error_of_its_edges():
    index = np.arange(BUCKETS)
    lower, upper = 2 ** (index / BUCKETS_PER_OCTAVE), 2 ** ((index + 1) / BUCKETS_PER_OCTAVE)
    middle = bucket_middle_ns(index)
    assert (middle / lower - 1).max() < 0.0028
    assert (1 - middle / upper).max() < 0.0028
    assert np.allclose(middle / lower, upper / middle)
    assert (bucket_of(middle) == index).all()


@given(TIMES_NS, TIMES_NS)
def test_merging_is_the_same_as_counting_all_of_them(first, second):
    merged = buckets_of(first)
    merged.merge(buckets_of(second))
    assert_same(merged, buckets_of(first + second))


def test_merging_leaves_the_other_alone():
    other = buckets_of([5, 6])
    merged = LogBuckets()
    merged.merge(other)
    merged.merge(buckets_of([7]))
    assert_same(other, buckets_of([5, 6]))


@given(TIMES_NS)
def test_a_statistics_record_carries_all_of_it(values):
    buckets = buckets_of(values)
    document = orjson.dumps(buckets.sparse(), option=orjson.OPT_SERIALIZE_NUMPY)
    assert_same(LogBuckets.from_sparse(orjson.loads(document)), buckets)
    assert_same(LogBuckets.from_sparse(buckets.sparse()), buckets)


def test_a_statistics_record_names_only_buckets_that_hold_something():
    sparse = buckets_of([1, 4, 4, 4]).sparse()
    assert sparse["bucket"].tolist() == [0, 2 * BUCKETS_PER_OCTAVE]
    assert sparse["bucket_count"].tolist() == [1, 3]
    assert (sparse["count"], sparse["sum_ns"], sparse["min_ns"], sparse["max_ns"]) == (4, 13, 1, 4)


@given(st.lists(st.integers(0, ONE_HOUR_NS), min_size=1, max_size=60))
def test_count_sum_and_extremes_are_exact(values):
    buckets = buckets_of(values)
    assert buckets.count == len(values)
    assert buckets.mean_ns == sum(values) / len(values)
    assert buckets.percentile_ns(0) >= min(values)
    assert buckets.percentile_ns(100) <= max(values)


def test_a_percentile_never_leaves_what_was_measured():
    constant = buckets_of([123_457] * 10)
    assert {constant.percentile_ns(percent) for percent in (0, 50, 99.9, 100)} == {123_457.0}


def test_figures_are_in_microseconds():
    figures = buckets_of([1_000] * 99 + [2_000_000]).figures_us()
    assert (figures["count"], figures["max"]) == (100, 2_000.0)
    assert figures["mean"] == pytest.approx((99 * 1 + 2_000) / 100)
    assert figures["p50"] == figures["p99"] == pytest.approx(1.0, rel=WORST_ERROR)
    assert figures["p999"] == pytest.approx(2_000.0, rel=WORST_ERROR)


def test_nothing_measured_gives_no_figures():
    assert LogBuckets().figures_us() == {}
    assert math.isnan(LogBuckets().percentile_ns(50))
    assert math.isnan(LogBuckets().mean_ns)


def test_two_sets_of_buckets_share_no_counts():
    one, other = LogBuckets(), LogBuckets()
    one.counts[0] = 1
    assert other.count == 0


def test_a_rate_is_the_window_over_the_time_since_the_last_sample():
    meter = RateMeter(Meter.ENGINE_MESSAGES_SENT, start_ns=1_000)
    assert meter.sample(total=10_000, now_ns=1_000 + 1_250_000_000) == Throughput(meter=3, rate_per_s=8_000)
    assert meter.sample(total=10_500, now_ns=1_000 + 1_750_000_000) == Throughput(meter=3, rate_per_s=1_000)
    assert meter.sample(total=10_500, now_ns=1_000 + 2_750_000_000) == Throughput(meter=3, rate_per_s=0)


def test_two_samples_at_one_instant_are_no_division_by_zero():
    meter = RateMeter(Meter.GATEWAY_ORDERS_SENT, start_ns=5)
    assert meter.sample(total=1, now_ns=5).rate_per_s == 1_000_000_000


@given(st.lists(st.tuples(st.integers(0, 10**6), st.integers(1, 10**10)), min_size=1, max_size=20))
def test_each_rate_is_of_its_own_window_alone(windows):
    meter, total, now_ns = RateMeter(Meter.GATEWAY_ORDERS_SENT, start_ns=0), 0, 0
    for messages, elapsed_ns in windows:
        total, now_ns = total + messages, now_ns + elapsed_ns
        rate_per_s = meter.sample(total, now_ns).rate_per_s
        assert rate_per_s * elapsed_ns <= messages * 10**9 < (rate_per_s + 1) * elapsed_ns
