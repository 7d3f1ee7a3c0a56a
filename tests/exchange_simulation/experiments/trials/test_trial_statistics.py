"""Estimates of ratios, for data with a known answer and for random data."""

from __future__ import annotations

import numpy as np
import pytest

from exchange.estimates import RESAMPLES, median
from exchange_simulation.repeats.judging import ALPHA, share_lower
from exchange_simulation.repeats.sign_flips import (
    CAUTION,
    FLIPS,
    LogRatio,
    estimate_together,
    hodges_lehmann,
    repeats_needed,
    sign_flips,
)

ROWS = 15
METRICS = 3
REPEATS = 10
GROUPS = [row * METRICS // ROWS for row in range(ROWS)]
Floats = np.ndarray[tuple[int, ...], np.dtype[np.float64]]


def judged(rows: Floats, alpha: float = ALPHA) -> list[LogRatio]:
    return estimate_together(rows.tolist(), GROUPS[: len(rows)], alpha, seed=1)


def normal_rows(seed: int, repeats: int = REPEATS, rows: int = ROWS) -> Floats:
    return np.random.default_rng(seed).normal(0.0, 0.15, (rows, repeats))


def test_a_median_s_interval_contains_it_and_depends_only_on_the_seed() -> None:
    estimate = median([3.0, 1.0, 2.0, 5.0, 4.0], seed=1)
    assert estimate.value == 3.0
    assert 1.0 <= (estimate.low or 0) <= 3.0 <= (estimate.high or 0) <= 5.0
    assert median([3.0, 1.0, 2.0, 5.0, 4.0], seed=1) == estimate


def test_an_interval_has_the_quantiles_of_the_medians_of_its_resamples() -> None:
    values = np.exp(np.random.default_rng(5).normal(size=11))
    drawn = np.random.default_rng(1).integers(0, 11, (RESAMPLES, 11))
    low, high = np.quantile(np.median(values[drawn], axis=1), [0.025, 0.975])
    estimate = median(values.tolist(), seed=1)
    assert (estimate.low, estimate.high) == pytest.approx((low, high), rel=1e-12)


@pytest.mark.parametrize("repeats", [2, 3, 10])
def test_equal_figures_have_an_interval_of_no_width(repeats: int) -> None:
    estimate = median([7.0] * repeats, seed=1)
    assert estimate.value == 7.0
    assert estimate.low == 7.0
    assert estimate.high == 7.0


def test_one_repeat_has_no_interval() -> None:
    assert median([7.0], seed=1).low is None


def test_the_hodges_lehmann_estimate_is_the_median_of_all_pairs_averages() -> None:
    assert hodges_lehmann(np.array([0.0, 1.0, 2.0, 100.0])) == 1.75  # 0, .5, 1, 1, 1.5, 2, 50 ...
    assert hodges_lehmann(np.arange(101.0)) == pytest.approx(50.0, abs=1.0)


@pytest.mark.parametrize("repeats", [6, 10, 12])
def test_few_repeats_have_every_sign_flip_once_up_to_the_sign(repeats: int) -> None:
    ways = {tuple(way) for way in sign_flips(repeats, seed=1).tolist()}
    assert len(ways) == 2 ** (repeats - 1)
    assert not any(tuple(-sign for sign in way) in ways for way in ways)


def test_many_repeats_have_sign_flips_that_the_seed_chooses() -> None:
    assert sign_flips(20, seed=1).shape == (FLIPS, 20)
    assert (sign_flips(20, seed=1)[0] == 1.0).all()
    assert (sign_flips(20, seed=1) != sign_flips(20, seed=2)).any()


def test_p_is_1_without_a_difference_and_smallest_for_a_clear_one() -> None:
    none, clear = judged(np.vstack([np.zeros(6), np.linspace(1.0, 1.1, 6)]))
    assert none.p_corrected == 1.0
    assert not none.differs
    assert clear.p == 2**-5
    assert clear.p_corrected == 2**-5 / CAUTION
    assert clear.differs


def test_a_verdict_needs_repeats_whose_agreement_is_no_chance() -> None:
    assert [repeats_needed(ALPHA / looks) for looks in (1, 2, 3)] == [6, 7, 8]
    assert 2.0**-5 < CAUTION * ALPHA < 2.0**-4
    assert [judged(np.ones((1, repeats)))[0].differs for repeats in (5, 6)] == [False, True]


@pytest.mark.parametrize("seed", range(20))
def test_interval_and_verdict_never_contradict_each_other(seed: int) -> None:
    rows = normal_rows(seed) + np.linspace(-0.3, 0.3, ROWS)[:, None]
    estimate = judged(rows)
    assert {row.differs for row in estimate} == {True, False}
    for row in estimate:
        assert row.differs == (abs(row.estimate) > row.half_width) == (row.p_corrected <= ALPHA)


def test_an_estimate_is_shifted_and_turned_with_its_row() -> None:
    rows = normal_rows(7)
    estimate = judged(rows)
    turned = judged(-rows)
    assert [row.estimate for row in turned] == pytest.approx([-row.estimate for row in estimate])
    assert [row.p_corrected for row in turned] == [row.p_corrected for row in estimate]
    shifted = judged(rows + 3.0)
    assert [row.estimate for row in shifted] == pytest.approx([row.estimate + 3.0 for row in estimate])
    assert all(row.differs for row in shifted)


def test_one_run_far_off_does_not_hide_a_difference() -> None:
    rows = normal_rows(3, repeats=12, rows=5)
    rows[0] = 0.4 + 0.05 * rows[0]
    rows[0, 4] = -4.6  # a run that was 100 times slower than its rival
    assert [row.differs for row in judged(rows)] == [True, False, False, False, False]


def test_one_run_far_off_makes_no_difference() -> None:
    rows = normal_rows(3, rows=5)
    rows[0, 4] = 4.6
    assert not any(row.differs for row in judged(rows))


def test_a_row_missing_in_some_repeats_is_estimated_from_others() -> None:
    rows = normal_rows(4, rows=3)
    rows[1] = 1.0
    rows[1, [2, 5]] = np.nan
    assert judged(rows)[1].estimate == 1.0
    assert [row.differs for row in judged(rows)] == [False, True, False]


def test_equal_arms_seldom_get_a_verdict() -> None:
    told = [any(row.differs for row in judged(normal_rows(seed, repeats=8))) for seed in range(150)]
    assert sum(told) / len(told) <= 0.08  # 5 % nominal; three standard errors above are 10 %


def test_intervals_contain_all_true_values_as_often_as_stated() -> None:
    truth = np.linspace(-0.4, 0.4, ROWS)
    held = [
        all(abs(row.estimate - true) <= row.half_width for row, true in zip(judged(made), truth, strict=True))
        for made in (normal_rows(seed, repeats=8) + truth[:, None] for seed in range(100))
    ]
    assert sum(held) / len(held) >= 0.9


def test_share_lower_counts_equal_pairs_half() -> None:
    assert share_lower([1.0, 2.0, 3.0, 4.0], [2.0, 2.0, 2.0, 5.0]) == 0.625
