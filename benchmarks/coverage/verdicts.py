"""The verdicts of a trial: how often they are false, how often they find a difference, how often intervals are right.

    two arms, 5 rates, 3 metrics, 10 repeats  ──▶  log ratios of 15 rows  ──▶  each method's verdicts

The log p50, p99 and CPU of a run deviate by 0.13, 0.4 and 0.05. A part of each deviation is drift of the machine, which
two runs close in time share (AR(1), 0.95 a run). The rest belongs to the run alone; half of its variance is common to
the run's three metrics.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import log, sqrt

import numpy as np
import numpy.typing as npt

from benchmarks.comparison import BenchmarkRow
from exchange.estimates import median
from exchange_simulation.experiments.trials.verdicts import POWER, smallest_ratio
from exchange_simulation.repeats.judging import ALPHA
from exchange_simulation.repeats.sign_flips import LogRatio, estimate_together

P50_DEVIATION = 0.13
"""Standard deviation of a run's log p50."""
DEVIATIONS = np.array([P50_DEVIATION, 0.4, 0.05])
"""Standard deviations of a run's log p50, p99 and CPU."""
DRIFT = 0.62
"""The part of a deviation that is drift."""
RUN_PART = sqrt(1 - DRIFT**2)
"""The part of a deviation that belongs to the run alone."""
DRIFT_KEPT = 0.95
"""The share of the drift that is left at the next run."""
DEVIATION_OF_RATIO = P50_DEVIATION * sqrt(2 * (1 - DRIFT**2 * DRIFT_KEPT))
"""Standard deviation of the log ratio of p50 of two runs next to each other, whose drift is nearly the same."""
RATES = 5
METRICS = 3
REPEATS = 10
GROUPS = [metric for metric in range(METRICS) for _ in range(RATES)]
"""The metric of each row."""
EFFECT = log(1.2)
FAMILIES = 60
"""The number of simulated trials, for each repeat of the benchmark."""
SATURATED = np.array([3.0, 3.0, 0.0])
"""A saturated run adds this to the log of its p50, p99 and CPU."""
LOOKS = (10, 20, 40)
"""Repeats after which a trial with `--until-decided` tests its rows."""
ARMS = 10
"""An arm of a sweep runs once in this many runs."""

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class SimulatedNoise:
    """The noise of runs."""

    name: str
    tails: bool = False
    """Student's t with 3 degrees of freedom, in place of a normal distribution."""
    saturated: float = 0.0
    """The share of saturated runs."""
    uneven: float = 1.0
    """The noise of a run alone is larger at one rate than at another. The factor of a rate is log-normal: this number
    to the power of a normal value.
    """

    def log_ratios(self, random: np.random.Generator, repeats: int = REPEATS) -> tuple[Floats, Floats]:
        """Simulate a trial with equal arms.

        Returns (log ratios: rows by repeats; sides: rates by repeats, 1 if the first arm ran first, else -1). Drift
        continues from run to run, and two runs next to each other are a pair.
        """
        pairs = (repeats, RATES, 2)
        drift = ar1(random, repeats * RATES * 2).reshape(*pairs, 1)
        common = self._drawn(random, (*pairs, 1))
        of_metric = self._drawn(random, (*pairs, METRICS))
        factor_of_rate = self.uneven ** random.normal(size=(1, RATES, 1, 1))
        noise_of_run = factor_of_rate * (common + of_metric) / sqrt(2)
        logs = DEVIATIONS * (DRIFT * drift + RUN_PART * noise_of_run)
        is_saturated = random.random((*pairs, 1)) < self.saturated
        logs = logs + SATURATED * is_saturated
        sides = random.choice([-1.0, 1.0], (repeats, RATES))
        first_run = logs[:, :, 0]
        second_run = logs[:, :, 1]
        first_arm_to_second = (first_run - second_run) * sides[..., None]
        rows = first_arm_to_second.transpose(2, 1, 0).reshape(METRICS * RATES, repeats)
        return np.asarray(rows, np.float64), sides.T

    def _drawn(self, random: np.random.Generator, shape: tuple[int, ...]) -> Floats:
        """Values of deviation 1."""
        if self.tails:
            return random.standard_t(3, shape) / sqrt(3)
        return random.normal(size=shape)


def ar1(random: np.random.Generator, length: int) -> Floats:
    """Return a drift of deviation 1, of which a share DRIFT_KEPT is left at the next run."""
    from scipy import signal

    steps = random.normal(size=length) * sqrt(1 - DRIFT_KEPT**2)
    steps[0] = random.normal()
    return np.asarray(signal.lfilter([1.0], [1.0, -DRIFT_KEPT], steps), np.float64)


NOISES = (
    SimulatedNoise("normal"),
    SimulatedNoise("heavy tails", tails=True),
    SimulatedNoise("one run in 20 saturated", saturated=0.05),
    SimulatedNoise("rates of uneven noise", uneven=1.7),
)


def sign_flips(rows: Floats, _sides: Floats) -> Mask:
    """Our own test: which rows differ."""
    return np.array([row.differs for row in estimated(rows)])


def estimated(rows: Floats, alpha: float = ALPHA) -> list[LogRatio]:
    """Our own test: the estimate of each row."""
    return estimate_together(rows.tolist(), GROUPS, alpha, seed=1)


def wilcoxon_and_holm(rows: Floats, _sides: Floats) -> Mask:
    """Wilcoxon's signed-rank test of each row, with Holm's correction, which scipy does not have."""
    from scipy import stats

    p = stats.wilcoxon(rows, axis=1).pvalue
    differs = np.zeros(len(rows), bool)
    for place, row in enumerate(np.argsort(p)):
        rows_left = len(rows) - place
        differs[row] = p[row] * rows_left < ALPHA
        if not differs[row]:
            break
    return differs


def mixed(rows: Floats, sides: Floats) -> Mask:
    """A mixed model: an effect a rate, a random effect a pair of runs, drift as covariate; Bonferroni's correction.

    The effect of a pair cancels in its log ratio. The drift between its two runs adds to the ratio if the first arm ran
    first, and else subtracts: it enters the ratio with the sign `sides`.
    """
    from scipy import stats

    deviations = rows - rows.mean(axis=1, keepdims=True)
    centred_sides = np.tile(sides - sides.mean(axis=1, keepdims=True), (METRICS, 1))
    shape_by_metric = (METRICS, RATES * REPEATS)
    covariance = (deviations * centred_sides).reshape(shape_by_metric).sum(axis=1)
    spread = (centred_sides**2).reshape(shape_by_metric).sum(axis=1)
    drift = (covariance / spread).repeat(RATES)
    residuals = deviations - drift[:, None] * centred_sides
    degrees = RATES * (REPEATS - 1) - 1
    variance = (residuals**2).reshape(shape_by_metric).sum(axis=1) / degrees
    mean_side = np.tile(sides.mean(axis=1), METRICS)
    effect = rows.mean(axis=1) - drift * mean_side
    variance_of_effect = variance.repeat(RATES) * (1 / REPEATS + mean_side**2 / spread.repeat(RATES))
    t = np.abs(effect) / np.sqrt(variance_of_effect)
    return np.asarray(2 * stats.t.sf(t, degrees) < ALPHA / len(rows))


def blocked(rows: Floats, _sides: Floats) -> Mask:
    """An analysis of variance with repeats as blocks and the noise of all rates pooled; Bonferroni's correction."""
    from scipy import stats

    pooled = rows.var(axis=1, ddof=1).reshape(METRICS, RATES).mean(axis=1).repeat(RATES)
    t = np.abs(rows.mean(axis=1)) / np.sqrt(pooled / REPEATS)
    return np.asarray(2 * stats.t.sf(t, RATES * (REPEATS - 1)) < ALPHA / len(rows))


OUR_METHOD = "sign flips, max-T"
METHODS: dict[str, Callable[[Floats, Floats], Mask]] = {
    OUR_METHOD: sign_flips,
    "Wilcoxon, Holm": wilcoxon_and_holm,
    "blocked ANOVA": blocked,
    "mixed model": mixed,
}


@dataclass(frozen=True)
class Share(BenchmarkRow):
    """A share in percent, with a bound on one side."""

    at_most: float | None = None
    at_least: float | None = None

    @property
    def is_reached(self) -> bool | None:
        if self.at_most is None and self.at_least is None:
            return None
        (share,) = self.ours
        return (self.at_least or 0.0) <= share <= (self.at_most or 100.0)


def rows(repeats: int) -> Iterator[BenchmarkRow]:
    """Measure false verdicts, found differences, and intervals that contain the true ratio."""
    families = FAMILIES * repeats
    for noise in NOISES:
        yield from rows_of_noise(noise, families)
    yield announced_difference(families)
    yield until_decided(families // 4)
    hits = [_interval_contains_median(seed) for seed in range(families)]
    yield _share("drift: bootstrap interval of a median holds it, 95 nominal", "", hits)


def standard_error(share: float, trials: int) -> float:
    """Return the standard error, in percentage points, of a share that was counted in this many trials."""
    return 100 * sqrt(share * (1 - share) / trials)


def rows_of_noise(noise: SimulatedNoise, families: int) -> Iterator[BenchmarkRow]:
    """Measure every method under one noise; only our own test has bounds."""
    margin = 2 * standard_error(0.05, families)
    trials = [noise.log_ratios(np.random.default_rng(seed)) for seed in range(families)]
    truth = _one_effect(EFFECT)
    for method, judge in METHODS.items():
        limit = 5.0 + margin if judge is sign_flips else None
        false_verdicts = [bool(judge(rows, sides).any()) for rows, sides in trials]
        yield _share(f"{noise.name}: A/A families with any verdict, at most 5", method, false_verdicts, at_most=limit)
        least = 60.0 if judge is sign_flips and noise is NOISES[0] else None
        right_verdicts = [bool(judge(rows + truth[:, None], sides)[0]) for rows, sides in trials]
        yield _share(f"{noise.name}: one 20 % row of 15 found, reach 60", method, right_verdicts, at_least=least)
    hits = [_intervals_contain(rows + truth[:, None], truth) for rows, _ in trials]
    yield _share(f"{noise.name}: all 15 intervals hold the truth", OUR_METHOD, hits, at_least=95.0 - margin)


def announced_difference(families: int) -> BenchmarkRow:
    """Measure how often the difference is found that a plan announces as the smallest that it can find."""
    smallest = smallest_ratio(REPEATS, len(GROUPS), DEVIATION_OF_RATIO, ALPHA)
    truth = _one_effect(log(smallest))
    right_verdicts = []
    for seed in range(families):
        rows, _ = NOISES[0].log_ratios(np.random.default_rng(seed))
        right_verdicts.append(estimated(rows + truth[:, None])[0].differs)
    title = f"normal: the {smallest - 1:.0%} that a plan says is found in {POWER:.0%} of trials"
    return _share(title, OUR_METHOD, right_verdicts, at_least=100 * POWER - 2 * standard_error(POWER, families))


def until_decided(families: int) -> BenchmarkRow:
    """Measure false verdicts of trials that test their rows several times."""
    false_verdicts = []
    for seed in range(families):
        rows, _ = NOISES[0].log_ratios(np.random.default_rng(seed), LOOKS[-1])
        false_verdicts.append(_any_look_differs(rows))
    title = "normal, --until-decided, looks after 10, 20 and 40 repeats: A/A families with any verdict, at most 5"
    return _share(title, OUR_METHOD, false_verdicts, at_most=5.0 + 3 * standard_error(0.05, families))


def _one_effect(effect: float) -> Floats:
    """True log ratios of all rows: the first row has the effect, and the others have none."""
    truth = np.zeros(len(GROUPS))
    truth[0] = effect
    return truth


def _share(title: str, method: str, hits: list[bool], **bounds: float | None) -> BenchmarkRow:
    """The row for the share of hits, in percent."""
    percent = 100 * float(np.mean(hits))
    return Share(
        title=f"{title}: {method}" if method else title, against="", unit="%", ours=[percent], reference=[], **bounds
    )


def _intervals_contain(rows: Floats, truth: Floats) -> bool:
    """Whether the interval of every row contains its true log ratio."""
    for row, true_ratio in zip(estimated(rows), truth, strict=True):
        if abs(row.estimate - true_ratio) > row.half_width:
            return False
    return True


def _any_look_differs(rows: Floats) -> bool:
    """Whether equal arms differ at any look."""
    verdicts: list[bool] = []
    for look in LOOKS:
        verdicts += [row.differs for row in estimated(rows[:, :look], ALPHA / len(LOOKS))]
    return any(verdicts)


def _interval_contains_median(seed: int) -> bool:
    """Whether the interval of an arm's median contains the true median, 1, though the machine drifts."""
    drift = ar1(np.random.default_rng(seed), REPEATS * ARMS)
    values = np.exp(P50_DEVIATION * drift[::ARMS])
    estimate = median(values.tolist(), seed)
    return (estimate.low or 0.0) <= 1.0 <= (estimate.high or 0.0)
