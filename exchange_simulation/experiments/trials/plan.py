"""A trial's plan: its arms, the order of its runs, and plan.json.

Repeats are interleaved, so that drift of the machine affects every arm alike. plan.json is written before the first
run, so that the trial can be resumed after an interruption.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any

from exchange.allowed import BadSetting, whole
from exchange.json_records import SCHEMA
from exchange.record_kinds import PlanRecord
from exchange.settings import RunSettings
from exchange.unique import unique
from exchange_simulation.experiments.trials.arms import TrialArm
from exchange_simulation.experiments.trials.study import COMPARE, STUDIES, Study
from exchange_simulation.launching.errors import UserError
from exchange_simulation.launching.files import write_json
from exchange_simulation.launching.launch.brokers import broker_start_s
from exchange_simulation.launching.record.reading import UnknownSettings, record_for_report, settings_as_written
from exchange_simulation.repeats.noise_rule import RedoRule
from exchange_simulation.repeats.turns import in_turns

FILE = "plan.json"
NEW_TRIAL = "start anew under another name; its comparison.html and comparison.json stay as they are"
"""What a user can do if the plan cannot be used."""
WARM_UP = 0
"""The repeat number of warm-up runs, which come first and never count."""
OVERHEAD_S = 2.5
"""Time of a run beside its orders: processes start, load their compiled kernels and end, and the page is written."""
UNKNOWN_S = 5.0
"""The assumed length of a run without a rate."""
MOST_REPEATS = 1_000
MOST_PAUSE_S = 3_600.0


@dataclass(frozen=True)
class TrialStep:
    """One run of the plan."""

    repeat: int
    arm: TrialArm

    @property
    def name(self) -> str:
        return f"{self.repeat:02}-{self.arm.slug}"


@dataclass(frozen=True, kw_only=True)
class TrialPlan:
    """A trial's plan: every arm runs once in each repeat. Equal plans give equal orders."""

    arms: tuple[TrialArm, ...]
    repeats: int
    seed: int
    study: Study = COMPARE
    pause_s: float = 0.0
    """Time between two runs, in which sockets close, and a broker's queues and disk writes drain."""
    redo: RedoRule | None = None
    """The rule on noisy runs, which are repeated; None if every run counts."""
    seed_by_repeat: bool = True
    """True if the seed rises by one with each repeat. All arms of a repeat have the same orders."""
    looks: tuple[int, ...] = ()
    """Numbers of repeats after which the trial ends if every row is decided; empty if it always makes all repeats."""
    resumed: int | None = 0
    """How often the trial was resumed; None in the plan of an older version, which did not count resumptions."""

    def __post_init__(self) -> None:
        whole("repeats", self.repeats, 1, MOST_REPEATS)
        if not 0 <= self.pause_s <= MOST_PAUSE_S:
            raise BadSetting("pause", self.pause_s, f"seconds, 0 to {MOST_PAUSE_S:g}")
        slugs = [arm.slug for arm in self.arms]
        if len(set(slugs)) < len(slugs) or not slugs:
            raise BadSetting("arms", slugs, "one or more arms, no two alike")

    def with_redo(self, redo_noisy: bool) -> TrialPlan:
        """Return the same plan, in which noisy runs are repeated if `redo_noisy`, and otherwise count."""
        redo = RedoRule.of_plan(self.repeats * len(self.arms)) if redo_noisy else None
        return replace(self, redo=redo)

    def with_looks(self, max_repeats: int) -> TrialPlan:
        """Return the same plan, which doubles its repeats while rows are undecided, up to `max_repeats`.

        The rule on noisy runs allows as many redos as for a plan of `max_repeats`.
        """
        whole("max_repeats", max_repeats, self.repeats, MOST_REPEATS)
        looks = []
        repeats = self.repeats
        while repeats < max_repeats:
            looks.append(repeats)
            repeats *= 2
        looks.append(max_repeats)
        redo = None if self.redo is None else RedoRule.of_plan(max_repeats * len(self.arms))
        return replace(self, looks=tuple(looks), redo=redo)

    @property
    def next_look(self) -> TrialPlan | None:
        """The plan with the repeats of the next look; None after the last look."""
        for repeats in self.looks:
            if repeats > self.repeats:
                return replace(self, repeats=repeats)
        return None

    @property
    def longest(self) -> TrialPlan:
        """The plan with the repeats of its last look."""
        return replace(self, repeats=max(self.repeats, *self.looks, 0))

    def settings_of(self, step: TrialStep) -> RunSettings:
        """Return the settings of a run. The seed differs by repeat, unless the arms have different seeds."""
        settings = step.arm.settings
        arms_differ_in_seed = len({arm.settings.seed for arm in self.arms}) > 1
        if step.repeat == WARM_UP or not self.seed_by_repeat or arms_differ_in_seed:
            return settings
        return replace(settings, seed=(settings.seed + step.repeat - 1) % 2**64)

    @property
    def contenders(self) -> list[str]:
        """The names of the contenders, in the order of their first arms."""
        return unique(arm.contender for arm in self.arms)

    @property
    def blocks(self) -> list[str]:
        """The names of the blocks, in the order of their first arms."""
        return unique(arm.block for arm in self.arms)

    @property
    def compared_arms(self) -> list[tuple[TrialArm, TrialArm]]:
        """The pairs of arms that are compared, block by block: those that differ in one factor."""
        pairs = []
        for block in self.blocks:
            arms = self.arms_of(block)
            for first, second in combinations(arms, 2):
                is_wanted = not self.study.compares_with_first or first is arms[0]
                if is_wanted and first.differs_in_one(second):
                    pairs.append((first, second))
        return pairs

    def arms_of(self, block: str) -> list[TrialArm]:
        """Return the arms of a block."""
        return [arm for arm in self.arms if arm.block == block]

    @property
    def warm_ups(self) -> list[TrialStep]:
        """One run for each contender over each transport, with its first arm."""
        firsts: dict[tuple[str, str], TrialArm] = {}
        for arm in self.arms:
            firsts.setdefault((arm.contender, arm.settings.transport), arm)
        return [TrialStep(WARM_UP, arm) for arm in firsts.values()]

    @property
    def steps(self) -> list[TrialStep]:
        """All runs that count, in their order. Runs that are compared with each other are close in time."""
        by_block = [self.arms_of(block) for block in self.blocks]
        return [TrialStep(repeat, arm) for repeat, arm in in_turns(by_block, self.repeats, self.seed)]


def expected_s(plan: TrialPlan, steps: Sequence[TrialStep]) -> float:
    """Return how long these runs will take, with the start of their brokers."""
    runs_s = sum(run_s(step.arm.settings) + plan.pause_s for step in steps)
    return runs_s + sum(broker_start_s(transport) for transport, _ in _brokers_of(steps))


def _brokers_of(steps: Iterable[TrialStep]) -> set[tuple[str, bool]]:
    """Return the brokers of these runs: the transport, and whether Nagle's algorithm is on at the broker."""
    settings_of_runs = (step.arm.settings for step in steps)
    return {(settings.transport, "broker" in settings.nagle) for settings in settings_of_runs}


def run_s(settings: RunSettings) -> float:
    """Return how long a run will take, with its start and its end."""
    return (settings.length_s or UNKNOWN_S) + OVERHEAD_S


def plan_as_dict(plan: TrialPlan) -> dict[str, Any]:
    """Return plan.json's content: the arms' settings, and the names of all runs in their order."""
    return {
        "schema": SCHEMA,
        "study": plan.study.name,
        "seed": plan.seed,
        "repeats": plan.repeats,
        "pause_s": plan.pause_s,
        "seed_by_repeat": plan.seed_by_repeat,
        "looks": list(plan.looks),
        "resumed": plan.resumed,
        "redo_noisy": None if plan.redo is None else asdict(plan.redo),
        "arms": [_arm_as_dict(arm) for arm in plan.arms],
        "warm_ups": [step.name for step in plan.warm_ups],
        "order": [step.name for step in plan.steps],
    }


def _arm_as_dict(arm: TrialArm) -> dict[str, Any]:
    written = {
        "contender": arm.contender,
        "block": arm.block,
        "levels": dict(arm.words_by_field),
        "settings": arm.settings.as_dict(),
    }
    if arm.checkout is not None:
        written["checkout"] = str(arm.checkout)
    return written


def write_plan(folder: Path, plan: TrialPlan) -> None:
    write_json(folder / FILE, plan_as_dict(plan))


def read_plan(folder: Path) -> TrialPlan:
    """Return the plan in a trial's folder.

    UserError if there is no plan, if the plan is damaged, or if this version would run the plan differently.
    """
    path = folder / FILE
    if not os.path.exists(path):
        raise UserError(f"{folder} holds nothing to resume: there is no plan.json in it")
    written = record_for_report(path, PlanRecord)
    try:
        plan = _plan(written)
    except UnknownSettings as error:
        raise UserError(f"{path} was written by another version of exchange: {error}; {NEW_TRIAL}") from error
    except (AttributeError, KeyError, TypeError, BadSetting) as error:
        raise UserError(f"{path} is damaged ({error}): {NEW_TRIAL}") from error
    if not _is_unchanged(written, plan_as_dict(plan)):
        raise UserError(f"{path} was written by another version of exchange: {NEW_TRIAL}")
    return plan


def _is_unchanged(written: dict[str, Any], planned: dict[str, Any]) -> bool:
    """Return True if every written setting has its value in `planned`, and the runs have the same order.

    A setting that the file lacks, since it is newer than the file, has its default in `planned`.
    """
    for old_arm, new_arm in zip(written["arms"], planned["arms"], strict=True):
        for name, value in old_arm["settings"].items():
            if name not in new_arm["settings"] or new_arm["settings"][name] != value:
                return False
    return bool(written["order"] == planned["order"])


def _plan(written: dict[str, Any]) -> TrialPlan:
    """Return the plan that plan.json's content describes. Fields that an older version lacked have its behaviour."""
    rule = written.get("redo_noisy")
    return TrialPlan(
        arms=tuple(_arm(arm) for arm in written["arms"]),
        repeats=written["repeats"],
        seed=written["seed"],
        study=STUDIES[written.get("study", COMPARE.name)],
        pause_s=written.get("pause_s", 0.0),
        redo=None if rule is None else RedoRule(**rule),
        seed_by_repeat=written.get("seed_by_repeat", False),
        looks=tuple(written.get("looks", ())),
        resumed=written.get("resumed"),
    )


def _arm(written: dict[str, Any]) -> TrialArm:
    settings = settings_as_written(written["settings"])
    checkout = Path(written["checkout"]) if written.get("checkout") else None
    return TrialArm(written["contender"], written["block"], settings, written.get("levels", {}), checkout)
