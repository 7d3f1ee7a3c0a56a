"""The verdicts of a trial: how often they are false, how often they find a difference, what their intervals hold.

    two arms, 5 rates, 3 metrics, 10 repeats  ──▶  log ratios of 15 rows  ──▶  each method's verdicts

A run's log p50, p99 and CPU deviate by 0.13, 0.4 and 0.05. Part of that is drift of the machine, which two runs close
in time share (AR(1), 0.95 a run); the rest is the run's own, half of it common to its three metrics.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import log, sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.comparison import BenchmarkRow
from exchange.estimates import median
from exchange_simulation.experiments.trials.verdicts import POWER, smallest_ratio
from exchange_simulation.repeats.judging import ALPHA
from exchange_simulation.repeats.sign_flips import LogRatio, estimate_together

DEVIATIONS = np.array([0.13, 0.4, 0.05])
DRIFT, OWN, DEVIATION = 0.62, sqrt(1 - 0.62**2), 0.145
"""The parts of a deviation, and that of the log ratio of p50 of two runs next to each other."""
KEPT_OF_DRIFT = 0.95
RATES, METRICS, REPEATS = 5, 3, 10
GROUPS = [metric for metric in range(METRICS) for _ in range(RATES)]
EFFECT = log(1.2)
FAMILIES = 60
"""For each of the benchmark's repeats."""
SATURATED = np.array([3.0, 3.0, 0.0])
"""What a saturated run adds to the log of p50, p99 and CPU."""
LOOKS = (10, 20, 40)
"""A trial that goes on until every row is decided."""
ARMS = 10
"""An arm of a sweep runs once in so many runs."""

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class SimulatedNoise:
    """What runs deviate by."""

    name: str
    tails: bool = False
    """Student's t with 3 degrees of freedom, in place of a normal distribution."""
    saturated: float = 0.0
    """The share of saturated runs."""
    uneven: float = 1.0
    """The factor by which one rate's noise typically differs from another's."""

    def log_ratios(self, random: np.random.Generator, repeats: int = REPEATS) -> tuple[Floats, Floats]:
        """Rows by repeats, with equal arms; and by rate and repeat 1 if the first arm ran first, else -1.

        Drift goes on from run to run, two runs next to each other a pair.
        """
        pairs = (repeats, RATES, 2)
        drift = ar1(random, repeats * RATES * 2).reshape(*pairs, 1)
        common, own = (self._drawn(random, (*pairs, size)) for size in (1, METRICS))
        width = np.exp(log(self.uneven) * random.normal(size=(1, RATES, 1, 1)))
        logs = DEVIATIONS * (DRIFT * drift + OWN * width * (common + own) / sqrt(2))
        logs = logs + SATURATED * (random.random((*pairs, 1)) < self.saturated)
        sides = random.choice([-1.0, 1.0], pairs[:2])
        ratios = (logs[:, :, 0] - logs[:, :, 1]) * sides[..., None]
        return np.asarray(ratios.transpose(2, 1, 0).reshape(METRICS * RATES, repeats), np.float64), sides.T

    def _drawn(self, random: np.random.Generator, shape: tuple[int, ...]) -> Floats:
        return random.standard_t(3, shape) / sqrt(3) if self.tails else random.normal(size=shape)


def ar1(random: np.random.Generator, length: int) -> Floats:
    """Return a drift of deviation 1, of which a share KEPT_OF_DRIFT is left at the next run."""
    from scipy import signal

    steps = random.normal(size=length) * sqrt(1 - KEPT_OF_DRIFT**2)
    steps[0] = random.normal()
    return np.asarray(signal.lfilter([1.0], [1.0, -KEPT_OF_DRIFT], steps), np.float64)


NOISES = (
    SimulatedNoise("normal"),
    SimulatedNoise("heavy tails", tails=True),
    SimulatedNoise("one run in 20 saturated", saturated=0.05),
    SimulatedNoise("rates of uneven noise", uneven=1.7),
)


def ours(rows: Floats, _sides: Floats) -> Mask:
    return np.array([row.differs for row in judged(rows)])


def judged(rows: Floats, alpha: float = ALPHA) -> list[LogRatio]:
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

    The log ratios of pairs are free of the pairs' own effects, and a drift from the first run of a pair to the second
    has the sign of their order.
    """
    from scipy import stats

    own = rows - rows.mean(axis=1, keepdims=True)
    order = np.tile(sides - sides.mean(axis=1, keepdims=True), (METRICS, 1))
    by_metric = METRICS, RATES * REPEATS
    slopes = (own * order).reshape(by_metric).sum(axis=1) / (order**2).reshape(by_metric).sum(axis=1)
    drift = slopes.repeat(RATES)[:, None]
    left = own - drift * order
    degrees = RATES * (REPEATS - 1) - 1
    pooled = ((left**2).reshape(by_metric).sum(axis=1) / degrees).repeat(RATES)
    spread = (order**2).reshape(by_metric).sum(axis=1).repeat(RATES)
    order_mean = np.tile(sides.mean(axis=1), METRICS)
    effect = rows.mean(axis=1) - drift[:, 0] * order_mean
    t = np.abs(effect) / np.sqrt(pooled * (1 / REPEATS + order_mean**2 / spread))
    return np.asarray(2 * stats.t.sf(t, degrees) < ALPHA / len(rows))


def blocked(rows: Floats, _sides: Floats) -> Mask:
    """An analysis of variance with repeats as blocks and the noise of all rates pooled; Bonferroni's correction."""
    from scipy import stats

    pooled = rows.var(axis=1, ddof=1).reshape(METRICS, RATES).mean(axis=1).repeat(RATES)
    t = np.abs(rows.mean(axis=1)) / np.sqrt(pooled / REPEATS)
    return np.asarray(2 * stats.t.sf(t, RATES * (REPEATS - 1)) < ALPHA / len(rows))


METHODS: dict[str, Callable[[Floats, Floats], Mask]] = {
    "sign flips, max-T": ours,
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
        return (self.at_least or 0.0) <= self.ours[0] <= (self.at_most or 100.0)


def rows(repeats: int) -> Iterator[BenchmarkRow]:
    """False verdicts, found differences, and true ratios in their intervals."""
    families = FAMILIES * repeats
    error = 2 * 100 * sqrt(0.05 * 0.95 / families)
    for noise in NOISES:
        equal = [noise.log_ratios(np.random.default_rng(seed)) for seed in range(families)]
        one = np.array([EFFECT, *[0.0] * (METRICS * RATES - 1)])
        for method, judge in METHODS.items():
            limit = 5.0 + error if judge is ours else None
            false = 100 * np.mean([judge(*made).any() for made in equal])
            yield _share(f"{noise.name}: A/A families with any verdict, at most 5", method, false, at_most=limit)
            power = 100 * np.mean([judge(made + one[:, None], sides)[0] for made, sides in equal])
            least = 60.0 if judge is ours and noise is NOISES[0] else None
            yield _share(f"{noise.name}: one 20 % row of 15 found, reach 60", method, power, at_least=least)
        held = 100 * np.mean([_all_held(made + one[:, None], one) for made, _ in equal])
        yield _share(f"{noise.name}: all 15 intervals hold the truth", "sign flips, max-T", held, at_least=95.0 - error)
    announced = np.array([log(smallest_ratio(REPEATS, len(GROUPS), DEVIATION, ALPHA)), *[0.0] * (len(GROUPS) - 1)])
    made = (NOISES[0].log_ratios(np.random.default_rng(seed))[0] + announced[:, None] for seed in range(families))
    power = 100 * np.mean([judged(rows)[0].differs for rows in made])
    what = f"normal: the {np.exp(announced[0]) - 1:.0%} that a plan says is found in {POWER:.0%} of trials"
    yield _share(what, "sign flips, max-T", power, at_least=100 * POWER - 2 * error)
    going_on = [
        _ever_told(NOISES[0].log_ratios(np.random.default_rng(seed), LOOKS[-1])[0]) for seed in range(families // 4)
    ]
    what = "normal, --until-decided, looks after 10, 20 and 40 repeats: A/A families with any verdict, at most 5"
    yield _share(what, "sign flips, max-T", 100 * np.mean(going_on), at_most=5.0 + 3 * error)
    held = 100 * np.mean([_holds_the_median(seed) for seed in range(families)])
    yield _share("drift: bootstrap interval of a median holds it, 95 nominal", "", held)


def _share(what: str, method: str, percent: np.floating[Any], **bounds: float | None) -> BenchmarkRow:
    return Share(f"{what}: {method}" if method else what, "", "%", [float(percent)], [], **bounds)


def _all_held(rows: Floats, truth: Floats) -> bool:
    return all(abs(row.estimate - true) <= row.half_width for row, true in zip(judged(rows), truth, strict=True))


def _ever_told(rows: Floats) -> bool:
    """Whether any look tells equal arms apart."""
    return any(row.differs for look in LOOKS for row in judged(rows[:, :look], ALPHA / len(LOOKS)))


def _holds_the_median(seed: int) -> bool:
    """Whether an arm's interval holds the median of all hours, 1, where the hour drifts while the repeats are made."""
    values = np.exp(0.13 * ar1(np.random.default_rng(seed), REPEATS * ARMS)[::ARMS])
    found = median(values.tolist(), seed)
    return (found.low or 0.0) <= 1.0 <= (found.high or 0.0)
