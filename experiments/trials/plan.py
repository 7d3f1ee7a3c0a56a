"""In which order the runs of a trial are made: repeats interleaved, so that a machine's drift meets every arm."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from random import Random

from exchange.allowed import BadSetting
from exchange.settings import RunSettings
from experiments.trials.arms import Arm
from experiments.trials.study import COMPARE, Study

WARM_UP = 0
"""The repeat of runs that are made first and are never counted."""
OVERHEAD_S = 2.5
"""Around a run: processes start, load their compiled kernels, end, and the page is written."""
UNKNOWN_S = 5.0
"""A run of so many orders as fast as it goes; only running it tells."""
MOST_REPEATS = 1_000
MOST_PAUSE_S = 3_600.0


@dataclass(frozen=True)
class Step:
    """One run of the plan."""

    repeat: int
    arm: Arm

    @property
    def name(self) -> str:
        return f"{self.repeat:02}-{self.arm.slug}"


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Every arm once a repeat; equal plans give equal orders."""

    arms: tuple[Arm, ...]
    repeats: int
    seed: int
    study: Study = COMPARE
    pause_s: float = 0.0
    """Between two runs, for what the one before left to drain: closing sockets, a broker's queues, a disk's writes."""

    def __post_init__(self) -> None:
        if not 1 <= self.repeats <= MOST_REPEATS:
            raise BadSetting("repeats", self.repeats, f"a whole number from 1 to {MOST_REPEATS:,}")
        if not 0 <= self.pause_s <= MOST_PAUSE_S:
            raise BadSetting("pause", self.pause_s, f"seconds, 0 to {MOST_PAUSE_S:g}")
        slugs = [arm.slug for arm in self.arms]
        if len(set(slugs)) < len(slugs) or not slugs:
            raise BadSetting("arms", slugs, "one or more arms, no two alike")

    @property
    def contenders(self) -> list[str]:
        return list(dict.fromkeys(arm.contender for arm in self.arms))

    @property
    def blocks(self) -> list[str]:
        return list(dict.fromkeys(arm.block for arm in self.arms))

    @property
    def pairs(self) -> list[tuple[Arm, Arm]]:
        """The arms that are compared with each other, block by block: those that differ in one thing."""
        every = (pair for block in self.blocks for pair in combinations(self.arms_of(block), 2))
        pairs = [(first, second) for first, second in every if first.differs_in_one(second)]
        firsts = {block: self.arms_of(block)[0] for block in self.blocks}
        return [pair for pair in pairs if not self.study.against_the_first or pair[0] is firsts[pair[0].block]]

    def arms_of(self, block: str) -> list[Arm]:
        return [arm for arm in self.arms if arm.block == block]

    @property
    def warm_ups(self) -> list[Step]:
        """One for each contender over each transport, at its first arm."""
        firsts: dict[tuple[str, str], Arm] = {}
        for arm in self.arms:
            firsts.setdefault((arm.contender, arm.settings.transport), arm)
        return [Step(WARM_UP, arm) for arm in firsts.values()]

    @property
    def steps(self) -> list[Step]:
        """Blocks shuffled within a repeat, arms within their block: what is compared stands close together."""
        random = Random(self.seed)
        return [step for repeat in range(1, self.repeats + 1) for step in self._repeat(repeat, random)]

    def _repeat(self, repeat: int, random: Random) -> list[Step]:
        blocks = self.blocks
        random.shuffle(blocks)
        by_block = [self.arms_of(block) for block in blocks]
        for arms in by_block:
            random.shuffle(arms)
        return [Step(repeat, arm) for arms in by_block for arm in arms]


def expected_s(plan: Plan, steps: Sequence[Step]) -> float:
    """How long so many runs will take."""
    return sum(run_s(step.arm.settings) + plan.pause_s for step in steps)


def run_s(settings: RunSettings) -> float:
    """How long a run will take, its start and end included."""
    return (settings.length_s or UNKNOWN_S) + OVERHEAD_S
