"""The runs of a trial's plan, and their order."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sample_trials import arms, plan

from exchange.allowed import BadSetting
from exchange.settings import RunSettings
from exchange_simulation.experiments.trials.arms import Factor, arms_of
from exchange_simulation.experiments.trials.plan import OVERHEAD_S, TrialPlan, read_plan, run_s, write_plan
from exchange_simulation.launching.errors import UserError

RATES = (1000.0, 2000.0, 4000.0)
PLANS = st.builds(
    plan,
    repeats=st.integers(1, 6),
    seed=st.integers(0, 2**64 - 1),
    contenders=st.integers(1, 4),
    rates=st.sampled_from([RATES[:1], RATES]),
)


@given(PLANS)
def test_every_repeat_runs_every_arm_once_and_ends_before_the_next_begins(trial_plan: TrialPlan) -> None:
    assert [step.repeat for step in trial_plan.steps] == sorted(step.repeat for step in trial_plan.steps)
    for _, steps in groupby(trial_plan.steps, key=lambda step: step.repeat):
        assert sorted(step.arm.label for step in steps) == sorted(arm.label for arm in trial_plan.arms)


@given(PLANS)
def test_arms_that_are_compared_stand_next_to_each_other(trial_plan: TrialPlan) -> None:
    visits = [key for key, _ in groupby(trial_plan.steps, key=lambda step: (step.repeat, step.arm.block))]
    assert len(visits) == len(set(visits)) == trial_plan.repeats * len(trial_plan.blocks)


@given(PLANS)
def test_the_seed_alone_decides_the_order(trial_plan: TrialPlan) -> None:
    again = TrialPlan(arms=trial_plan.arms, repeats=trial_plan.repeats, seed=trial_plan.seed)
    assert again.steps == trial_plan.steps


def test_both_blocks_and_arms_are_shuffled() -> None:
    trial_plan = plan(repeats=20, rates=RATES)
    by_repeat = [list(steps) for _, steps in groupby(trial_plan.steps, key=lambda step: step.repeat)]
    assert len({tuple(dict.fromkeys(step.arm.block for step in steps)) for steps in by_repeat}) > 3
    assert {steps[0].arm.contender for steps in by_repeat} == {"a", "b"}
    assert plan(repeats=20, rates=RATES, seed=2).steps != trial_plan.steps


def test_each_contender_is_warmed_up_once() -> None:
    trial_plan = plan(contenders=3, rates=RATES)
    assert [step.arm.contender for step in trial_plan.warm_ups] == ["a", "b", "c"]
    assert {step.repeat for step in trial_plan.warm_ups} == {0}


def test_a_mistake_in_any_arm_is_found_before_the_first_run() -> None:
    with pytest.raises(BadSetting, match="packing is 0"):
        arms_of(RunSettings, [Factor("packing", {"good": 1, "bad": 0})], [])
    with pytest.raises(BadSetting, match="repeats is 0"):
        plan(repeats=0)
    with pytest.raises(BadSetting, match="no two alike"):
        TrialPlan(arms=arms()[:1] * 2, repeats=1, seed=1)


def test_a_product_of_several_settings_has_an_arm_for_each_combination() -> None:
    trial_plan = arms_of(
        RunSettings,
        [Factor("packing", {"single": 1, "packed": 8}), Factor("policy", {"exact": "exact-price"})],
        [Factor("orders_per_s", {"slow": 10.0, "fast": 20.0})],
    )
    assert [arm.label for arm in trial_plan] == [
        "single, exact slow",
        "packed, exact slow",
        "single, exact fast",
        "packed, exact fast",
    ]
    assert trial_plan[3].settings.packing == 8
    assert trial_plan[3].settings.orders_per_s == 20.0


def test_the_expected_length_of_a_run_is_its_duration_and_overhead() -> None:
    """The duration is given, or is the orders over the rate."""
    assert run_s(RunSettings(orders=8000, orders_per_s=2000)) == 4.0 + OVERHEAD_S
    assert run_s(RunSettings(orders=None, duration_s=3.0, orders_per_s=None, window=10)) == 3.0 + OVERHEAD_S


@given(PLANS)
def test_a_written_plan_reads_back_equal(tmp_path_factory: pytest.TempPathFactory, trial_plan: TrialPlan) -> None:
    folder = tmp_path_factory.mktemp("trial")
    write_plan(folder, trial_plan)
    assert read_plan(folder) == trial_plan


@pytest.mark.parametrize("damage", [b"", b"{}", b"[]", b'{"arms": [], "repeats": 1, "seed": 1}'])
def test_a_damaged_plan_is_refused_in_a_sentence(damage: bytes, tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_bytes(damage)
    with pytest.raises(UserError, match="damaged"):
        read_plan(tmp_path)


def test_a_plan_that_this_version_would_run_differently_is_refused(tmp_path: Path) -> None:
    write_plan(tmp_path, plan(repeats=5))
    written = orjson.loads((tmp_path / "plan.json").read_bytes())
    (tmp_path / "plan.json").write_bytes(orjson.dumps({**written, "order": written["order"][::-1]}))
    with pytest.raises(UserError, match="another version"):
        read_plan(tmp_path)


def test_a_plan_with_an_unknown_setting_is_refused_by_its_name(tmp_path: Path) -> None:
    write_plan(tmp_path, plan())
    written = orjson.loads((tmp_path / "plan.json").read_bytes())
    written["arms"][0]["settings"]["colour"] = "red"
    (tmp_path / "plan.json").write_bytes(orjson.dumps(written))
    with pytest.raises(UserError, match=r"another version of exchange: .* no setting colour"):
        read_plan(tmp_path)


def test_the_seed_differs_by_repeat_and_is_the_same_for_all_arms() -> None:
    trial_plan = plan(repeats=3, rates=RATES)
    seeds = {(step.repeat, trial_plan.settings_of(step).seed) for step in [*trial_plan.warm_ups, *trial_plan.steps]}
    assert seeds == {(0, 1), (1, 1), (2, 2), (3, 3)}


def test_arms_that_differ_in_their_seed_keep_it_in_every_repeat() -> None:
    trial_plan = TrialPlan(
        arms=arms_of(RunSettings, [], [Factor("seed", {"seed 4": 4, "seed 9": 9})]), repeats=2, seed=1
    )
    assert {trial_plan.settings_of(step).seed for step in trial_plan.steps} == {4, 9}


def test_a_plan_of_an_older_version_keeps_one_seed_for_all_repeats(tmp_path: Path) -> None:
    write_plan(tmp_path, plan(repeats=2))
    written = orjson.loads((tmp_path / "plan.json").read_bytes())
    del written["seed_by_repeat"]
    (tmp_path / "plan.json").write_bytes(orjson.dumps(written))
    older = read_plan(tmp_path)
    assert {older.settings_of(step).seed for step in older.steps} == {1}


def test_a_plan_with_looks_doubles_its_repeats_up_to_the_most() -> None:
    """The order of what was measured stays."""
    trial_plan = plan(repeats=10).with_looks(30)
    assert trial_plan.looks == (10, 20, 30)
    second = trial_plan.next_look
    assert second is not None
    assert second.repeats == 20
    assert second.steps[: len(trial_plan.steps)] == trial_plan.steps
    assert second.next_look is not None
    assert second.next_look.next_look is None


def test_a_maximum_below_the_first_number_of_repeats_is_refused() -> None:
    with pytest.raises(BadSetting, match="max-repeats"):
        plan(repeats=10).with_looks(9)
