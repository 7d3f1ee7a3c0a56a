"""A trial's verdicts and caveats, from runs with chosen figures."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest
from sample_trials import HOST, VERSIONS, plan, put, put_all

from exchange.estimates import IntervalEstimate
from exchange.settings import RunSettings
from exchange_simulation.experiments.trials.arms import TrialArm
from exchange_simulation.experiments.trials.plan import TrialPlan
from exchange_simulation.experiments.trials.results import results
from exchange_simulation.experiments.trials.verdicts import unreachable
from exchange_simulation.reports.comparison.arm_rows import arm_rows
from exchange_simulation.reports.formats.ratios import interval_in_words

STEADY = [100.0, 101.0, 99.0, 102.0, 98.0, 100.0, 101.0, 99.0, 102.0, 98.0]


def first_verdict(trial: Path, trial_plan: TrialPlan, metric: str = "due_p50_us") -> dict[str, Any]:
    """The first verdict on a metric."""
    return next(verdict for verdict in results(trial, trial_plan)["verdicts"] if verdict["metric"] == metric)


def caveats(trial: Path, trial_plan: TrialPlan) -> str:
    return "\n".join(results(trial, trial_plan)["caveats"])


def test_equal_figures_cannot_be_told_apart(tmp_path: Path) -> None:
    put_all(tmp_path, plan(), {"a": STEADY, "b": STEADY})
    verdict = first_verdict(tmp_path, plan())
    assert verdict["outcome"] == "cannot tell"
    assert verdict["p"] == 1.0
    assert verdict["ratio"] == 1.0
    assert verdict["sentence"] == "cannot tell: a / b is 1.00 (1.00..1.00), below 1 in 0 of 10 repeats"


def test_a_clear_difference_has_factor_and_interval_either_way(tmp_path: Path) -> None:
    """Either arm may be named first."""
    (tmp_path / "one").mkdir()
    (tmp_path / "other").mkdir()
    put_all(tmp_path / "one", plan(), {"a": STEADY, "b": [3 * us for us in STEADY]})
    put_all(tmp_path / "other", plan(), {"b": STEADY, "a": [3 * us for us in STEADY]})
    one, other = first_verdict(tmp_path / "one", plan()), first_verdict(tmp_path / "other", plan())
    assert one["sentence"] == "a is 3.0 times faster than b (3.0..3.0), in 10 of 10 repeats"
    assert other["sentence"] == "b is 3.0 times faster than a (3.0..3.0), in 10 of 10 repeats"
    assert one["share_of_repeats_first_lower"] == 1.0
    assert other["share_of_repeats_first_lower"] == 0.0
    assert one["ratio"] == pytest.approx(1 / 3)
    cpu = first_verdict(tmp_path / "one", plan(), "cpu_s_per_million")
    assert cpu["sentence"] == "b takes 3.0 times the CPU of a (3.0..3.0), in 10 of 10 repeats"


def test_a_difference_within_the_width_of_a_bucket_is_no_verdict(tmp_path: Path) -> None:
    put_all(tmp_path, plan(), {"a": STEADY, "b": [1.005 * us for us in STEADY]})
    verdict = first_verdict(tmp_path, plan())
    assert verdict["p_corrected"] < 0.05
    assert verdict["outcome"] == "cannot tell"
    assert verdict["sentence"] == (
        "too close to call, under 1%: a / b is 0.995 (0.995..0.995), below 1 in 10 of 10 repeats"
    )


def test_too_few_repeats_give_an_estimate_and_the_needed_number(tmp_path: Path) -> None:
    for name, repeats in (("five", 5), ("six", 6)):
        (tmp_path / name).mkdir()
        put_all(tmp_path / name, plan(repeats=repeats), {"a": STEADY, "b": [3 * us for us in STEADY]})
    few = first_verdict(tmp_path / "five", plan(repeats=5))
    assert few["outcome"] == "cannot tell"
    assert few["low"] is None
    assert few["p"] is None
    assert few["sentence"] == "cannot tell from 5 repeats, 6 are needed: a / b was 0.33 in them"
    assert "5 repeats cannot reach a verdict: 6 are needed, since 5 agree by chance in 6.2% of trials" in caveats(
        tmp_path / "five", plan(repeats=5)
    )
    looks = unreachable(plan(repeats=2).with_looks(5)) or ""
    assert looks.endswith("6 are needed, since 5 agree by chance in 6.2% of trials, and at most 4% are allowed")
    assert first_verdict(tmp_path / "six", plan(repeats=6))["outcome"] == "differ"
    assert caveats(tmp_path / "six", plan(repeats=6)) == ""


@pytest.mark.parametrize(
    ("ratio", "message"),
    [
        (IntervalEstimate(1.02, 1.003, 1.04), "(1.003..1.04)"),
        (IntervalEstimate(1.02, 1.0, 1.04), "(1.00..1.04)"),
        (IntervalEstimate(0.8, 0.64, 0.9996), "(0.64..0.9996)"),
    ],
)
def test_the_end_of_an_interval_is_never_rounded_to_1(ratio: IntervalEstimate, message: str) -> None:
    assert interval_in_words(ratio) == message


def test_an_arm_that_did_not_keep_its_rate_is_not_compared(tmp_path: Path) -> None:
    for step in plan().steps:
        full = step.arm.contender == "b" and step.repeat <= 8
        put(tmp_path, step, status="saturated" if full else "complete", us=1000.0 if full else 100.0)
    verdict = first_verdict(tmp_path, plan())
    assert verdict["outcome"] == "not compared"
    assert verdict["sentence"] == "b did not hold 1,000 orders/s (8 of 10 runs saturated)"
    assert verdict["p"] is None


def test_two_arms_that_did_not_keep_their_rate_share_a_sentence(tmp_path: Path) -> None:
    for step in plan(repeats=1).steps:
        put(tmp_path, step, status="saturated")
    sentence = first_verdict(tmp_path, plan(repeats=1))["sentence"]
    assert sentence == "neither held 1,000 orders/s (1 of 1 and 1 of 1 runs saturated)"


def test_a_few_saturated_runs_are_mentioned(tmp_path: Path) -> None:
    for step in plan().steps:
        full = step.arm.contender == "b" and step.repeat <= 2
        put(tmp_path, step, us=STEADY[step.repeat - 1], status="saturated" if full else "complete")
    assert first_verdict(tmp_path, plan())["outcome"] == "cannot tell"
    assert "some runs saturated: b at 1,000 orders/s (2 of 10 runs)" in caveats(tmp_path, plan())


def test_a_failed_run_is_left_out_with_its_repeat_and_has_a_caveat(tmp_path: Path) -> None:
    for step in plan().steps:
        failed = step.arm.contender == "b" and step.repeat == 4
        reasons = ["answers differ"] if failed else []
        put(tmp_path, step, us=1.0 if failed else 100.0, status="invalid" if failed else "complete", reasons=reasons)
    record = results(tmp_path, plan())
    assert record["status"] == "partial"
    assert first_verdict(tmp_path, plan())["repeats"] == [1, 2, 3, 5, 6, 7, 8, 9, 10]
    assert [arm["metrics"]["due_p50_us"]["low"] for arm in record["arms"]] == [100.0, 100.0]
    assert record["caveats"][0] == "19 of 20 planned runs are there; 1 run dropped out, 0 made again"
    assert "b at 1,000 orders/s: left out 1 invalid: answers differ" in record["caveats"]


def test_every_number_leads_to_its_run(tmp_path: Path) -> None:
    trial_plan = plan(repeats=3)
    folders = {
        (step.arm.label, step.repeat): put(tmp_path, step, 100.0 + step.repeat).name for step in trial_plan.steps
    }
    for arm in results(tmp_path, trial_plan)["arms"]:
        assert arm["metrics"]["due_p99_us"]["by_repeat"] == {"1": 101.0, "2": 102.0, "3": 103.0}
        assert {(arm["label"], run["repeat"]): run["run"] for run in arm["runs"]}.items() <= folders.items()


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"host": {**HOST, "kernel": "other"}}, "host.kernel"),
        ({"versions": {**VERSIONS, "exchange": "0.2.0"}}, "versions.exchange"),
        ({"settings": {"seed": 2}}, "settings.seed"),
    ],
)
def test_runs_under_other_conditions_are_said_to_differ(changed: dict[str, Any], field: str, tmp_path: Path) -> None:
    trial_plan = plan(repeats=2)
    first, *others = trial_plan.steps
    put(tmp_path, first, **changed)
    for step in others:
        put(tmp_path, step, host={**HOST, "load_before": [9.9, 0, 0]})
    assert f"conditions differ: {field} is" in caveats(tmp_path, trial_plan)
    assert "load_before" not in caveats(tmp_path, trial_plan)


def test_a_tape_with_a_name_that_is_no_utf_8_makes_no_difference(tmp_path: Path) -> None:
    settings = RunSettings(tape=os.fsdecode(b"tape\xff"), orders_per_s=1000.0)
    trial_plan = TrialPlan(arms=(TrialArm("a", "", settings),), repeats=1, seed=1)
    put_all(tmp_path, trial_plan, {"a": [100.0]})
    record = results(tmp_path, trial_plan)
    assert record["conditions"]["differences"] == []
    assert arm_rows(record)[0]["runs"] == 1


def test_equal_orders_with_different_answers_have_a_caveat(tmp_path: Path) -> None:
    trial_plan = plan(repeats=1)
    for step in trial_plan.steps:
        put(tmp_path, step, checksums={"orders": "aa", "answers": step.arm.contender})
    assert "the same orders had different answers" in caveats(tmp_path, trial_plan)


def test_several_gateways_may_have_different_answers_to_the_same_orders(tmp_path: Path) -> None:
    """Regression: a comparison of four gateways said not to trust its runs, since the engine's order differs by run."""
    settings = RunSettings(orders_per_s=1000.0, duration_s=1.0, gateways=4)
    trial_plan = TrialPlan(arms=(TrialArm("a", "", settings), TrialArm("b", "", settings)), repeats=1, seed=1)
    for step in trial_plan.steps:
        put(tmp_path, step, checksums={"orders": "aa", "answers": step.arm.contender})
    assert "different answers" not in caveats(tmp_path, trial_plan)


@pytest.mark.parametrize(("engines", "warns"), [((1, 2), False), ((2, 2), True)])
def test_several_engines_have_a_checksum_of_answers_that_one_engine_does_not_have(
    engines: tuple[int, int], warns: bool, tmp_path: Path
) -> None:
    """Regression: a sweep of one and two engines said not to trust its runs."""
    arms = []
    for name, number in zip("ab", engines, strict=True):
        settings = RunSettings(orders_per_s=1000.0, duration_s=1.0, engines=number, instruments=2)
        arms.append(TrialArm(name, "", settings))
    trial_plan = TrialPlan(arms=tuple(arms), repeats=1, seed=1)
    for step in trial_plan.steps:
        put(tmp_path, step, checksums={"orders": "aa", "answers": step.arm.contender})
    assert ("different answers" in caveats(tmp_path, trial_plan)) == warns


@pytest.mark.parametrize(
    ("name", "values", "warns"),
    [
        ("policy", ("price-time", "exact-price"), False),
        ("max_price", (999, 2_000), False),
        ("instruments", (2, 3), False),
        ("opening", (None, "tape.bin"), False),
        ("packing", (1, 10), True),
        ("window", (None, 100), True),
        ("depth", (False, True), True),
    ],
)
def test_arms_whose_settings_decide_the_answers_may_answer_equal_orders_differently(
    name: str, values: tuple[Any, Any], warns: bool, tmp_path: Path
) -> None:
    """Regression: a sweep of two matching policies said not to trust its runs."""
    arms = []
    for contender, value in zip("ab", values, strict=True):
        settings = RunSettings(**{"orders_per_s": 1_000.0, "duration_s": 1.0, "orders": None, name: value})
        arms.append(TrialArm(contender, "", settings))
    trial_plan = TrialPlan(arms=tuple(arms), repeats=1, seed=1)
    for step in trial_plan.steps:
        put(tmp_path, step, checksums={"orders": "aa", "answers": step.arm.contender})
    assert ("different answers" in caveats(tmp_path, trial_plan)) == warns


def test_the_plan_is_not_counted_among_the_runs_that_differ_from_it(tmp_path: Path) -> None:
    """Regression: a setting that no run had was said to be that of one run."""
    trial_plan = plan(repeats=2)
    for step in trial_plan.steps:
        if step.arm.contender == "a":
            put(tmp_path, step, settings={"window": 7})
        else:
            put(tmp_path, step, settings={"window": 7} if step.repeat == 1 else {})
    words = caveats(tmp_path, trial_plan)
    assert "conditions differ: settings.window is None as planned, 7 in 2 runs" in words
    assert "conditions differ: settings.window is None as planned in 1 run, 7 in 1 run" in words
    differences = results(tmp_path, trial_plan)["conditions"]["differences"]
    assert [len(entry["runs"]) for entry in differences[0]["values"]] == [0, 2]
    assert [entry["planned"] for entry in differences[0]["values"]] == [True, False]


def test_the_metrics_of_an_absent_component_are_absent(tmp_path: Path) -> None:
    put_all(tmp_path, plan(repeats=1), {"a": [100.0], "b": [100.0]})
    metrics = results(tmp_path, plan(repeats=1))["arms"][0]["metrics"]
    assert "broker_cpu_s_per_million" not in metrics
    assert metrics["cpu_s_per_million"] == {
        "median": 200_000.0,
        "low": None,
        "high": None,
        "middle_half": None,
        "by_repeat": {"1": 200_000.0},
    }


def test_a_trial_without_a_single_run_has_results(tmp_path: Path) -> None:
    record = results(tmp_path, plan())
    assert record["status"] == "partial"
    assert record["verdicts"][0]["sentence"] == "a has no valid run; b has no valid run"


def test_work_beside_the_runs_is_told(tmp_path: Path) -> None:
    trial_plan = plan(repeats=2)
    quiet, busy = ({"window_s": 2.0, "other_cpu_s": other_s, "steal_s": 0.1} for other_s in (0.05, 1.1))
    for place, step in enumerate(trial_plan.steps):
        put(tmp_path, step, noise=busy if place == 0 else quiet)
    assert "more than 5% of the processors beside 1 of 4 runs, at most 30%" in caveats(tmp_path, trial_plan)


def test_an_emulated_network_that_was_not_the_one_asked_for_is_told(tmp_path: Path) -> None:
    trial_plan = plan(repeats=2)
    problem = "round trips took: gateway-engine 172 us, not 101 us"
    flagged = []
    for place, step in enumerate(trial_plan.steps):
        flags = [problem] if place > 0 else []
        folder = put(tmp_path, step, network={"profile": "gige", "flags": flags})
        flagged += [folder.name for _ in flags]
    [told] = [caveat for caveat in results(tmp_path, trial_plan)["caveats"] if problem in caveat]
    beginning, _, rest = told.partition(", as in ")
    assert beginning == "gige was not the network that was asked for in 3 of 4 runs"
    assert rest in [f"{name}: {problem}" for name in flagged]


def test_repeated_runs_and_resumptions_are_in_the_first_caveat(tmp_path: Path) -> None:
    put_all(tmp_path, plan(), {"a": STEADY, "b": STEADY})
    put(tmp_path, plan().steps[3], status="partial", reasons=["interrupted"])
    record = results(tmp_path, replace(plan(), resumed=1))
    first = "20 of 20 planned runs are there; 1 run dropped out, 1 made again; the trial was resumed once"
    assert record["caveats"][0] == first
    assert record["resumed"] == 1


def test_an_arm_without_a_run_neither_held_its_rate_nor_lost_it(tmp_path: Path) -> None:
    assert {row["held"] for row in arm_rows(results(tmp_path, plan()))} == {None}


def test_warm_ups_count_the_resumptions_of_an_older_trial(tmp_path: Path) -> None:
    second = plan(repeats=3).with_looks(6).next_look
    assert second is not None
    older = replace(second, resumed=None)
    for times in (0, 0, 1):
        put(tmp_path, older.warm_ups[0])
        assert results(tmp_path, older)["resumed"] == times


def test_a_delay_in_the_gateway_is_not_blamed_on_the_transport(tmp_path: Path) -> None:
    for step in plan().steps:
        late = step.arm.contender == "b" and step.repeat <= 8
        reasons = ["the gateway's p99 lag is 12.0 ms"] if late else []
        put(tmp_path, step, us=STEADY[step.repeat - 1], status="saturated" if late else "complete", reasons=reasons)
    assert first_verdict(tmp_path, plan())["outcome"] == "cannot tell"
    output = "some runs saturated: b at 1,000 orders/s (8 of 10 runs; in 8 only the gateway was late)"
    assert output in caveats(tmp_path, plan())


def test_a_setting_that_older_runs_lack_is_no_difference(tmp_path: Path) -> None:
    for step in plan(repeats=1).steps:
        path = put(tmp_path, step) / "run.json"
        record = orjson.loads(path.read_bytes())
        del record["settings"]["packing"]
        path.write_bytes(orjson.dumps(record))
    assert "conditions differ" not in caveats(tmp_path, plan(repeats=1))
