"""Statistics over repeats, against cases whose answer is known."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from exchange.estimates import RESAMPLES, median, ratio_of_medians
from experiments.trials.verdicts import ALPHA, holm, paired_p, repeats_needed, share_lower, smallest_p

ROWS, REPEATS = 15, 10


def test_a_median_s_interval_holds_it_and_equal_seeds_give_equal_intervals() -> None:
    found = median([3.0, 1.0, 2.0, 5.0, 4.0], seed=1)
    assert found.value == 3.0
    assert 1.0 <= (found.low or 0) <= 3.0 <= (found.high or 0) <= 5.0
    assert median([3.0, 1.0, 2.0, 5.0, 4.0], seed=1) == found


@pytest.mark.parametrize("repeats", [2, 3, 10])
def test_equal_figures_give_an_interval_of_no_width_and_no_warning(repeats: int) -> None:
    found = median([7.0] * repeats, seed=1)
    assert (found.value, found.low, found.high) == (7.0, 7.0, 7.0)


def test_one_repeat_has_no_interval() -> None:
    assert (median([7.0], seed=1).low, ratio_of_medians([1.0], [2.0], seed=1).high) == (None, None)


def test_a_drift_that_both_arms_met_does_not_widen_their_ratio() -> None:
    drifting = [100.0 * 1.5**repeat for repeat in range(10)]
    found = ratio_of_medians([2 * value for value in drifting], drifting, seed=1)
    assert (found.value, found.low, found.high) == (2.0, 2.0, 2.0)


def test_intervals_hold_the_truth_as_often_as_they_say() -> None:
    random = np.random.default_rng(1)
    trials = np.exp(random.normal(0.0, 0.2, (250, 2, REPEATS)))
    found = [ratio_of_medians(first, second, seed) for seed, (first, second) in enumerate(trials)]
    held = sum((e.low or 9) <= 1.0 <= (e.high or 0) for e in found) / len(found)
    assert 0.90 <= held <= 0.98


@pytest.mark.parametrize("repeats", [2, 7, 10, 30])
def test_resampled_medians_are_those_of_scipy_to_the_bit(repeats: int) -> None:
    first, second = np.random.default_rng(repeats).lognormal(0.0, 0.2, (2, repeats))

    def ratio(one: np.ndarray, other: np.ndarray, axis: int = -1) -> np.ndarray:
        return np.median(one, axis=axis) / np.median(other, axis=axis)

    expected = stats.bootstrap(
        (first, second), ratio, paired=True, vectorized=True, method="percentile", n_resamples=RESAMPLES,
        rng=np.random.default_rng(3),
    ).confidence_interval  # fmt: skip
    found = ratio_of_medians(first.tolist(), second.tolist(), seed=3)
    assert (found.low, found.high) == (expected.low, expected.high)


def test_no_difference_is_p_1_and_a_clear_one_the_smallest_p_there_is() -> None:
    values = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    assert paired_p(values, values) == 1.0
    assert paired_p(values, [2 * value for value in values]) == pytest.approx(smallest_p(6))


def test_the_smallest_p_is_that_of_all_signs_alike() -> None:
    assert [smallest_p(repeats) for repeats in (1, 2, 5, 10)] == pytest.approx([1.0, 0.5, 2 / 2**5, 2 / 2**10])


def test_an_outlier_that_is_one_repeat_of_many_does_not_make_a_difference() -> None:
    base = [100.0, 101.0, 99.0, 102.0, 98.0, 100.5, 101.5, 99.5]
    other = [101.0, 100.0, 100.0, 101.0, 99.0, 100.0, 102.0, 9900.0]
    assert paired_p(base, other) > ALPHA


def test_holm_s_textbook_case() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []


def test_as_many_repeats_are_needed_as_let_the_smallest_p_survive_the_rows() -> None:
    assert repeats_needed(1) == 6
    assert repeats_needed(ROWS) == REPEATS
    for rows in (1, 5, 15, 45):
        needed = repeats_needed(rows)
        assert smallest_p(needed) * rows < ALPHA <= smallest_p(needed - 1) * rows


def test_an_arm_against_itself_is_seldom_told_apart() -> None:
    random = np.random.default_rng(2)
    comparisons = np.exp(random.normal(0.0, 0.2, (120, ROWS, 2, REPEATS)))
    told = [min(holm([paired_p(*row) for row in rows])) < ALPHA for rows in comparisons]
    assert sum(told) / len(told) <= 0.06


def test_share_lower_counts_equal_pairs_half() -> None:
    assert share_lower([1.0, 2.0, 3.0, 4.0], [2.0, 2.0, 2.0, 5.0]) == 0.625
