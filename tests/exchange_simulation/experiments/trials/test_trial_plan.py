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
def test_every_repeat_runs_every_arm_once_and_ends_before_the_next_begins(made: TrialPlan) -> None:
    assert [step.repeat for step in made.steps] == sorted(step.repeat for step in made.steps)
    for _, steps in groupby(made.steps, key=lambda step: step.repeat):
        assert sorted(step.arm.label for step in steps) == sorted(arm.label for arm in made.arms)


@given(PLANS)
def test_arms_that_are_compared_stand_next_to_each_other(made: TrialPlan) -> None:
    visits = [key for key, _ in groupby(made.steps, key=lambda step: (step.repeat, step.arm.block))]
    assert len(visits) == len(set(visits)) == made.repeats * len(made.blocks)


@given(PLANS)
def test_the_seed_alone_decides_the_order(made: TrialPlan) -> None:
    again = TrialPlan(arms=made.arms, repeats=made.repeats, seed=made.seed)
    assert again.steps == made.steps


def test_both_blocks_and_arms_are_shuffled() -> None:
    made = plan(repeats=20, rates=RATES)
    by_repeat = [list(steps) for _, steps in groupby(made.steps, key=lambda step: step.repeat)]
    assert len({tuple(dict.fromkeys(step.arm.block for step in steps)) for steps in by_repeat}) > 3
    assert {steps[0].arm.contender for steps in by_repeat} == {"a", "b"}
    assert plan(repeats=20, rates=RATES, seed=2).steps != made.steps


def test_each_contender_is_warmed_up_once() -> None:
    made = plan(contenders=3, rates=RATES)
    assert [step.arm.contender for step in made.warm_ups] == ["a", "b", "c"]
    assert {step.repeat for step in made.warm_ups} == {0}


def test_a_mistake_in_any_arm_is_found_before_the_first_run() -> None:
    with pytest.raises(BadSetting, match="packing is 0"):
        arms_of(RunSettings, [Factor("packing", {"good": 1, "bad": 0})], [])
    with pytest.raises(BadSetting, match="repeats is 0"):
        plan(repeats=0)
    with pytest.raises(BadSetting, match="no two alike"):
        TrialPlan(arms=arms()[:1] * 2, repeats=1, seed=1)


def test_a_product_of_several_settings_has_an_arm_for_each_point() -> None:
    made = arms_of(
        RunSettings,
        [Factor("packing", {"single": 1, "packed": 8}), Factor("policy", {"exact": "exact-price"})],
        [Factor("orders_per_s", {"slow": 10.0, "fast": 20.0})],
    )
    assert [arm.label for arm in made] == [
        "single, exact slow",
        "packed, exact slow",
        "single, exact fast",
        "packed, exact fast",
    ]
    assert made[3].settings.packing == 8
    assert made[3].settings.orders_per_s == 20.0


def test_a_run_takes_its_duration_and_something_around_it() -> None:
    """The duration is given, or is the orders over the rate."""
    assert run_s(RunSettings(orders=8000, orders_per_s=2000)) == 4.0 + OVERHEAD_S
    assert run_s(RunSettings(orders=None, duration_s=3.0, orders_per_s=None, window=10)) == 3.0 + OVERHEAD_S


@given(PLANS)
def test_a_written_plan_reads_back_equal(tmp_path_factory: pytest.TempPathFactory, made: TrialPlan) -> None:
    folder = tmp_path_factory.mktemp("trial")
    write_plan(folder, made)
    assert read_plan(folder) == made


@pytest.mark.parametrize("damage", [b"", b"{}", b"[]", b'{"arms": [], "repeats": 1, "seed": 1}'])
def test_a_damaged_plan_is_refused_in_a_sentence(damage: bytes, tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_bytes(damage)
    with pytest.raises(UserError, match="damaged"):
        read_plan(tmp_path)


def test_a_plan_that_would_now_be_run_otherwise_is_refused(tmp_path: Path) -> None:
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


def test_a_repeat_has_orders_of_its_own_and_all_its_arms_have_the_same() -> None:
    made = plan(repeats=3, rates=RATES)
    seeds = {(step.repeat, made.settings_of(step).seed) for step in [*made.warm_ups, *made.steps]}
    assert seeds == {(0, 1), (1, 1), (2, 2), (3, 3)}


def test_arms_that_differ_in_their_seed_keep_it_in_every_repeat() -> None:
    made = TrialPlan(arms=arms_of(RunSettings, [], [Factor("seed", {"seed 4": 4, "seed 9": 9})]), repeats=2, seed=1)
    assert {made.settings_of(step).seed for step in made.steps} == {4, 9}


def test_a_plan_of_an_older_version_goes_on_with_its_one_seed(tmp_path: Path) -> None:
    write_plan(tmp_path, plan(repeats=2))
    written = orjson.loads((tmp_path / "plan.json").read_bytes())
    del written["seed_by_repeat"]
    (tmp_path / "plan.json").write_bytes(orjson.dumps(written))
    older = read_plan(tmp_path)
    assert {older.settings_of(step).seed for step in older.steps} == {1}


def test_a_plan_that_goes_on_doubles_its_repeats_up_to_the_most() -> None:
    """The order of what was measured stays."""
    made = plan(repeats=10).with_looks(30)
    assert made.looks == (10, 20, 30)
    second = made.next_look
    assert second is not None
    assert second.repeats == 20
    assert second.steps[: len(made.steps)] == made.steps
    assert second.next_look is not None
    assert second.next_look.next_look is None


def test_fewer_repeats_at_most_than_at_first_are_refused() -> None:
    with pytest.raises(BadSetting, match="max-repeats"):
        plan(repeats=10).with_looks(9)
