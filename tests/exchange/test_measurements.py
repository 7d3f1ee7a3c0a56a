"""Log buckets, checked with exact integers and numpy, and rate meters."""

from __future__ import annotations

import math

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import njit

from exchange.log_buckets import log_bucket
from exchange.measurements import BUCKETS, BUCKETS_PER_OCTAVE, LogBuckets, bucket_middle_ns, bucket_of
from exchange.messages import Throughput
from exchange.meters import Meter, RateMeter

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
    """Return buckets that are counted here, without the code that counts in a run."""
    counts = np.zeros(BUCKETS, np.int64)
    np.add.at(counts, bucket_of(values_ns), 1)
    return LogBuckets(
        counts,
        sum_ns=sum(map(int, values_ns)),
        min_ns=int(min(values_ns, default=0)),
        max_ns=int(max(values_ns, default=0)),
    )


def exact_bucket(value_ns: int) -> int:
    """Return floor(128 log2(value)), computed in integers: the length of value^128 in bits, less one."""
    return (max(value_ns, 1) ** BUCKETS_PER_OCTAVE).bit_length() - 1


def assert_same(left: LogBuckets, right: LogBuckets) -> None:
    assert (left.counts == right.counts).all()
    assert left.count == right.count
    assert left.sum_ns == right.sum_ns
    assert left.min_ns == right.min_ns
    assert left.max_ns == right.max_ns


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_percentiles_agree_with_numpy_within_half_a_bucket(name):
    values = DISTRIBUTIONS[name]
    buckets = buckets_of(values)
    for probability in PROBABILITIES:
        # np.quantile and not np.percentile, which computes 99.9 / 100: a little more than 0.999
        expected = np.quantile(values, probability, method="inverted_cdf")
        assert buckets.percentile_ns(probability * 100) == pytest.approx(expected, rel=WORST_ERROR)


@given(st.lists(st.integers(1, ONE_HOUR_NS), min_size=1, max_size=30), st.sampled_from(PROBABILITIES))
def test_percentiles_of_few_values_agree_with_numpy(values, probability):
    expected = np.quantile(values, probability, method="inverted_cdf")
    assert buckets_of(values).percentile_ns(probability * 100) == pytest.approx(expected, rel=WORST_ERROR)


@pytest.mark.parametrize("thousands", [41, 82, 164])
def test_the_rank_of_a_percentile_is_not_rounded_up_by_mistake(thousands):
    """The p99.9 is the last fast value where exactly 99.9 % of the values are fast."""
    fast_values = 999 * thousands
    slow_values = thousands
    buckets = LogBuckets.of(np.repeat([1_000, 1_000_000], [fast_values, slow_values]))
    assert buckets.percentile_ns(99.9) == pytest.approx(1_000, rel=WORST_ERROR)


def bucket_edges(octaves: int) -> np.ndarray:
    """Return the lower edges of the buckets of this many octaves, rounded down to whole nanoseconds."""
    exponents = np.arange(octaves * BUCKETS_PER_OCTAVE) / BUCKETS_PER_OCTAVE
    return np.unique((2.0**exponents).astype(np.int64))


def test_whole_nanoseconds_are_in_their_exact_bucket():
    edges = bucket_edges(octaves=42)
    values = np.unique(np.concatenate([edges, edges + 1, np.arange(1, 5_000)]))
    assert bucket_of(values).tolist() == [exact_bucket(value) for value in values.tolist()]


@njit
def compiled_buckets(values_ns):
    buckets = np.empty_like(values_ns)
    for i in range(len(values_ns)):
        buckets[i] = log_bucket(values_ns[i])
    return buckets


def test_compiled_code_and_numpy_use_the_same_buckets():
    edges = bucket_edges(octaves=46)
    values = np.unique(np.concatenate([edges - 1, edges, edges + 1, [0, 2**62]]))
    assert compiled_buckets(values).tolist() == bucket_of(values).tolist()


@pytest.mark.parametrize("octave", range(1, 45))
def test_a_power_of_two_starts_an_octave(octave):
    first_bucket = octave * BUCKETS_PER_OCTAVE
    assert bucket_of(2**octave) == first_bucket
    # A share, since in the highest octaves the logarithm of a double does not show a difference of 1 ns.
    assert bucket_of(2**octave * (1 - 1e-9)) == first_bucket - 1


def test_extreme_times_are_in_the_first_or_last_bucket():
    assert bucket_of([0, 1]).tolist() == [0, 0]
    assert bucket_of([2**45 - 1, 2**45, 2**62]).tolist() == [BUCKETS - 1] * 3


def test_a_bucket_s_middle_is_within_0_28_percent_of_its_edges():
    index = np.arange(BUCKETS)
    lower = 2 ** (index / BUCKETS_PER_OCTAVE)
    upper = 2 ** ((index + 1) / BUCKETS_PER_OCTAVE)
    middle = bucket_middle_ns(index)
    assert (middle / lower - 1).max() < 0.0028
    assert (1 - middle / upper).max() < 0.0028
    assert np.allclose(middle / lower, upper / middle)
    assert (bucket_of(middle) == index).all()


@given(TIMES_NS, TIMES_NS)
def test_merged_buckets_equal_the_buckets_of_all_times(first, second):
    merged = buckets_of(first)
    merged.merge(buckets_of(second))
    assert_same(merged, buckets_of(first + second))


def test_merging_does_not_change_the_other_buckets():
    other = buckets_of([5, 6])
    merged = LogBuckets()
    merged.merge(other)
    merged.merge(buckets_of([7]))
    assert_same(other, buckets_of([5, 6]))


@given(TIMES_NS)
def test_a_statistics_record_keeps_all_facts_of_the_buckets(values):
    buckets = buckets_of(values)
    document = orjson.dumps(buckets.sparse(), option=orjson.OPT_SERIALIZE_NUMPY)
    assert_same(LogBuckets.from_sparse(orjson.loads(document)), buckets)
    assert_same(LogBuckets.from_sparse(buckets.sparse()), buckets)


def test_a_statistics_record_lists_only_buckets_with_times():
    sparse = buckets_of([1, 4, 4, 4]).sparse()
    assert sparse["bucket"].tolist() == [0, 2 * BUCKETS_PER_OCTAVE]
    assert sparse["bucket_count"].tolist() == [1, 3]
    assert sparse["count"] == 4
    assert sparse["sum_ns"] == 13
    assert sparse["min_ns"] == 1
    assert sparse["max_ns"] == 4


@given(st.lists(st.integers(0, ONE_HOUR_NS), min_size=1, max_size=60))
def test_count_sum_and_extremes_are_exact(values):
    buckets = buckets_of(values)
    assert buckets.count == len(values)
    assert buckets.mean_ns == sum(values) / len(values)
    assert buckets.percentile_ns(0) >= min(values)
    assert buckets.percentile_ns(100) <= max(values)


def test_a_percentile_is_never_outside_the_measured_range():
    constant = buckets_of([123_457] * 10)
    assert {constant.percentile_ns(percent) for percent in (0, 50, 99.9, 100)} == {123_457.0}


def test_figures_are_in_microseconds():
    figures = buckets_of([1_000] * 99 + [2_000_000]).figures_us()
    assert figures["count"] == 100
    assert figures["max"] == 2_000.0
    assert figures["mean"] == pytest.approx((99 * 1 + 2_000) / 100)
    assert figures["p50"] == figures["p99"] == pytest.approx(1.0, rel=WORST_ERROR)
    assert figures["p999"] == pytest.approx(2_000.0, rel=WORST_ERROR)


def test_without_times_there_are_no_figures():
    assert LogBuckets().figures_us() == {}
    assert math.isnan(LogBuckets().percentile_ns(50))
    assert math.isnan(LogBuckets().mean_ns)


def test_two_sets_of_buckets_share_no_counts():
    one = LogBuckets()
    other = LogBuckets()
    one.counts[0] = 1
    assert other.count == 0


def test_a_rate_covers_the_time_since_the_last_sample():
    meter = RateMeter(Meter.ENGINE_MESSAGES_SENT, start_ns=1_000)
    assert meter.sample(total=10_000, now_ns=1_000 + 1_250_000_000) == Throughput(meter=3, rate_per_s=8_000)
    assert meter.sample(total=10_500, now_ns=1_000 + 1_750_000_000) == Throughput(meter=3, rate_per_s=1_000)
    assert meter.sample(total=10_500, now_ns=1_000 + 2_750_000_000) == Throughput(meter=3, rate_per_s=0)


def test_a_sample_at_the_start_divides_by_one_nanosecond():
    meter = RateMeter(Meter.GATEWAY_ORDERS_SENT, start_ns=5)
    assert meter.sample(total=1, now_ns=5).rate_per_s == 1_000_000_000


@given(st.lists(st.tuples(st.integers(0, 10**6), st.integers(1, 10**10)), min_size=1, max_size=20))
def test_each_rate_covers_only_its_own_window(windows):
    meter = RateMeter(Meter.GATEWAY_ORDERS_SENT, start_ns=0)
    total = 0
    now_ns = 0
    for messages, elapsed_ns in windows:
        total += messages
        now_ns += elapsed_ns
        rate_per_s = meter.sample(total, now_ns).rate_per_s
        assert rate_per_s * elapsed_ns <= messages * 10**9 < (rate_per_s + 1) * elapsed_ns
