"""Conditions of a comparison: between its contenders, and against a baseline."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from exchange_simulation.experiments.trials.plan import TrialPlan
from exchange_simulation.experiments.trials.results import results
from exchange_simulation.gates.baselines import Baseline
from exchange_simulation.gates.comparison_gate import ComparisonGate
from exchange_simulation.gates.conditions import RatioCondition, condition_of
from exchange_simulation.gates.gate_report import GATE_FAILED
from exchange_simulation.launching.errors import UserError
from exchange_simulation.reports.gate_outcomes import GateCheck
from tests.exchange_simulation.experiments.trials.sample_trials import plan, put, put_all

STEADY = [100.0, 101.0, 99.0, 102.0, 98.0, 100.0, 101.0, 99.0, 100.0, 100.0]
NOISE = {"window_s": 5.0, "share_of_all_cpus": 0.4}


def comparison(folder: Path, factor_of_b: float = 3.0, trial: TrialPlan | None = None) -> dict[str, Any]:
    """A trial in which contender b takes this many times as long as a."""
    folder.mkdir(exist_ok=True)
    made = trial or plan()
    times_of_b = [factor_of_b * us for us in STEADY[::-1]]
    put_all(folder, made, {"a": STEADY[: made.repeats], "b": times_of_b[: made.repeats]})
    return results(folder, made)


def gate(*fail_if: str) -> ComparisonGate:
    return ComparisonGate([condition_of(text, ["a", "b"]) for text in fail_if])


def only_check(gate_of_record: ComparisonGate, record: dict[str, Any]) -> GateCheck:
    (check,) = gate_of_record.report("folder", record).checks
    return check


def test_a_ratio_surely_over_the_factor_fails(tmp_path: Path) -> None:
    check = only_check(gate("p50 of b over 2x a"), comparison(tmp_path))
    assert check.outcome == "failed"
    assert check.requirement == "p50 of b not over 2 times a's, at 1,000 orders/s"
    assert re.fullmatch(
        r"failed: p50 of b is 3\.0 times a's \([0-9.]+\.\.[0-9.]+\), over 2, at 1,000 orders/s", check.line
    )


def test_a_ratio_surely_within_the_factor_passes(tmp_path: Path) -> None:
    line = only_check(gate("p50 of b over 4x a"), comparison(tmp_path)).line
    assert line.startswith("passed: p50 of b is 3.0 times a's (")
    assert line.endswith("), not over 4, at 1,000 orders/s")


def test_an_interval_that_contains_the_factor_is_undecided(tmp_path: Path) -> None:
    line = only_check(gate("p50 of b over 3x a"), comparison(tmp_path)).line
    assert line.startswith("undecided: p50 of b is 3.0 times a's (")
    assert line.endswith("), perhaps over 3, at 1,000 orders/s")


def test_too_few_repeats_decide_nothing(tmp_path: Path) -> None:
    check = only_check(gate("p50 of b over 2x a"), comparison(tmp_path, trial=plan(repeats=5)))
    assert check.outcome == "undecided"
    whether = "whether p50 of b is over 2 times a's, at 1,000 orders/s: cannot tell from 5 repeats, 6 are needed"
    assert check.sentence.startswith(whether)


def test_noisy_runs_decide_nothing(tmp_path: Path) -> None:
    trial = plan().with_redo(True)
    for step in trial.steps:
        put(tmp_path, step, us=300.0 if step.arm.contender == "b" else 100.0, noise=NOISE)
    report = gate("p50 of b over 2x a").report("folder", results(tmp_path, trial))
    assert [check.outcome for check in report.checks] == ["undecided"]
    assert report.checks[0].sentence.startswith(
        "whether p50 of b is over 2 times a's, at 1,000 orders/s: too noisy to say"
    )
    assert report.notes[0].startswith("the machine: others took more than 5%")
    assert report.exit_code(0) == 0


def test_a_figure_under_its_bound_can_fail_too(tmp_path: Path) -> None:
    assert only_check(gate("p50 of a under 0.5x b"), comparison(tmp_path)).outcome == "failed"
    line = only_check(gate("p50 of a under 0.2x b"), comparison(tmp_path / "other")).line
    assert line.startswith("passed: p50 of a is 0.33 times b's (")
    assert line.endswith("), not under 0.2, at 1,000 orders/s")


def test_a_time_is_a_bound_too(tmp_path: Path) -> None:
    record = comparison(tmp_path)
    assert only_check(gate("p50 of b over 200us"), record).outcome == "failed"
    line = only_check(gate("p50 of b over 1ms"), record).line
    assert re.fullmatch(r"passed: p50 of b is 30. us \(\d+\.\.\d+\), not over 1ms, at 1,000 orders/s", line)


def test_each_rate_has_a_check(tmp_path: Path) -> None:
    record = comparison(tmp_path, trial=plan(rates=(1000.0, 2000.0)))
    report = gate("p50 of b over 2x a").report("folder", record)
    assert len(report.checks) == 2
    assert report.exit_code(0) == GATE_FAILED
    assert report.exit_code(1) == 1, "a trial that lacks runs says so first"


def comparison_with_lost_rates(folder: Path, lost: str, b_per_s: float = 990.0) -> dict[str, Any]:
    """A trial in which the contenders of `lost` did not keep their rate; their times and CPU are equal."""
    folder.mkdir(exist_ok=True)
    for step in plan().steps:
        contender = step.arm.contender
        per_s = b_per_s if contender == "b" else 990.0
        put(
            folder,
            step,
            us=STEADY[step.repeat - 1],
            status="saturated" if contender in lost else "complete",
            rates={"orders_per_s": per_s + step.repeat},
        )
    return results(folder, plan())


@pytest.mark.parametrize(
    ("lost", "over", "under"),
    [
        ("", "passed", "passed"),
        ("a", "failed", "passed"),
        ("b", "passed", "failed"),
        ("ab", "undecided", "undecided"),
    ],
)
def test_completion_times_of_a_lost_rate_count_as_longer_than_any_bound(
    tmp_path: Path, lost: str, over: str, under: str
) -> None:
    record = comparison_with_lost_rates(tmp_path, lost)
    assert only_check(gate("p50 of a over 2x b"), record).outcome == over
    assert only_check(gate("p50 of a under 0.5x b"), record).outcome == under


@pytest.mark.parametrize("unmeasured", ["a", "b"])
def test_a_lost_rate_decides_nothing_if_the_other_contender_was_not_measured(tmp_path: Path, unmeasured: str) -> None:
    for step in plan().steps:
        status = "partial" if step.arm.contender == unmeasured else "saturated"
        put(tmp_path, step, status=status)
    check = only_check(gate("p50 of a over 2x b"), results(tmp_path, plan()))
    whether = "whether p50 of a is over 2 times b's, at 1,000 orders/s"
    assert check.line == f"undecided: {whether}: not measured on both sides"


def test_a_contender_without_its_rate_is_over_each_time(tmp_path: Path) -> None:
    record = comparison_with_lost_rates(tmp_path, "a")
    check = only_check(gate("p50 of a over 1s"), record)
    assert check.line == "failed: p50 of a counts as over 1s, at 1,000 orders/s: a did not keep its rate"
    line = only_check(gate("p50 of a under 1s"), record).line
    assert line == "passed: p50 of a counts as not under 1s, at 1,000 orders/s: a did not keep its rate"


@pytest.mark.parametrize("lost", ["", "a", "b", "ab"])
def test_a_rate_is_judged_whether_or_not_the_offered_one_was_kept(tmp_path: Path, lost: str) -> None:
    record = comparison_with_lost_rates(tmp_path, lost, b_per_s=300.0)
    outcomes = {
        text: only_check(gate(text), record).outcome
        for text in ("rate of b under 0.5x a", "rate of b under 0.2x a", "rate of b over 1x a", "rate of a over 2x b")
    }
    assert outcomes == {
        "rate of b under 0.5x a": "failed",
        "rate of b under 0.2x a": "passed",
        "rate of b over 1x a": "passed",
        "rate of a over 2x b": "failed",
    }


@pytest.mark.parametrize(("lost", "outcome"), [("", "passed"), ("a", "undecided"), ("b", "undecided")])
def test_cpu_is_not_judged_at_a_rate_that_was_not_kept(tmp_path: Path, lost: str, outcome: str) -> None:
    record = comparison_with_lost_rates(tmp_path, lost)
    assert only_check(gate("cpu of a over 2x b"), record).outcome == outcome
    assert only_check(gate("cpu of a under 0.5x b"), record).outcome == outcome


def test_a_rate_that_was_lost_on_a_noisy_machine_decides_nothing(tmp_path: Path) -> None:
    trial = plan().with_redo(True)
    for step in trial.steps:
        put(tmp_path, step, status="saturated" if step.arm.contender == "b" else "complete", noise=NOISE)
    record = results(tmp_path, trial)
    for text in ("p50 of b over 2x a", "p50 of b over 1us"):
        check = only_check(gate(text), record)
        assert check.outcome == "undecided"
        assert check.sentence.endswith(", at 1,000 orders/s: too noisy to say")


@pytest.mark.parametrize("place", [0, 1])
def test_both_contenders_need_enough_orders_for_the_percentile(tmp_path: Path, place: int) -> None:
    record = comparison(tmp_path)
    for arm in record["arms"]:
        arm["orders_measured"] = 100_000
    arm = record["arms"][place]
    arm["orders_measured"] = 999
    check = only_check(gate("p99 of b over 2x a"), record)
    words = f"p99 needs 1,000 orders, and a run of {arm['contender']} has 999"
    assert check.line == f"undecided: whether p99 of b is over 2 times a's, at 1,000 orders/s: {words}"


def test_a_condition_without_any_decided_check_is_said_not_to_be_in_the_exit_code(tmp_path: Path) -> None:
    record = comparison(tmp_path)
    report = gate("p50 of b over 3x a", "p50 of b over 4x a").report("folder", record)
    assert report.exit_code(0) == 0
    assert report.notes_on_undecided == [
        "the exit code says nothing about 'p50 of b over 3x a': none of its checks was decided"
    ]


def test_a_condition_on_contenders_that_share_no_rate_is_undecided(tmp_path: Path) -> None:
    record = comparison(tmp_path)
    record["arms"][0]["block"] = "at 7 orders/s"
    check = only_check(gate("p50 of b over 2x a"), record)
    assert check.line == "undecided: whether p50 of b is over 2 times a's: no rate at which both were measured"


def test_names_and_figures_are_known_in_any_case() -> None:
    condition = condition_of("P99.9 of A over 1.5x B", ["a", "b"])
    assert isinstance(condition, RatioCondition)
    assert (condition.contender, condition.other_contender, condition.factor) == ("a", "b", 1.5)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("p99 > 2x", "it takes FIGURE of NAME over FACTORx NAME"),
        ("p98 of a over 2x b", "'p98' is no figure; there are mean, p50"),
        ("p99 of c over 2x b", "'c' is not compared; there are a, b"),
        ("p99 of a over 2x c", "'c' is not compared"),
        ("p99 of a over 0x b", "the factor is 0"),
        (f"p99 of a over {'9' * 400}x b", "the factor is too large"),
        ("p99 of a over soon", "'soon' is not understood"),
        ("p99 of a over 0ms", "the time is 0ms; give one above 0, as 1ms"),
        ("p99 of a under -1ms", "the time is -1ms; give one above 0, as 1ms"),
        ("p99 of a over 1e9999999s", "'1e9999999s' is not understood"),
        ("p99 of a over infs", "'infs' is not understood"),
        ("cpu of a over 2ms", "cpu is no time"),
        ("p99 of a over 2x A", "it compares a with itself; name another contender: b"),
    ],
)
def test_a_wrong_condition_is_refused_before_the_first_run(text: str, problem: str) -> None:
    with pytest.raises(UserError) as error:
        condition_of(text, ["a", "b"])
    assert problem in error.value.message


def against(earlier: dict[str, Any], record: dict[str, Any], slower_by: float | None = 0.1) -> list[GateCheck]:
    return list(ComparisonGate((), Baseline("main", earlier), slower_by).report("folder", record).checks)


def test_a_slower_figure_fails_and_an_equal_one_passes(tmp_path: Path) -> None:
    earlier = comparison(tmp_path / "earlier", factor_of_b=3.0)
    later = comparison(tmp_path / "later", factor_of_b=3.6)
    of_a, of_b = (check for check in against(earlier, later) if check.requirement.startswith("p50"))
    assert of_a.requirement == "p50 of a not more than 10% worse than the baseline's, at 1,000 orders/s"
    assert of_a.line.startswith("passed: p50 of a is 1.00 times the baseline's (")
    assert of_a.line.endswith("), not more than 10% worse, at 1,000 orders/s")
    assert of_b.line.startswith("failed: p50 of b is 1.20 times the baseline's (")
    assert of_b.line.endswith("), more than 10% worse, at 1,000 orders/s")


def test_a_baseline_of_another_machine_decides_nothing(tmp_path: Path) -> None:
    earlier = comparison(tmp_path / "earlier", factor_of_b=3.0)
    later = comparison(tmp_path / "later", factor_of_b=6.0)
    earlier["conditions"]["host"]["cpu"] = "another"
    checks = against(earlier, later)
    assert {check.outcome for check in checks} == {"undecided"}
    assert checks[0].sentence.endswith(": the baseline is of another machine: cpu was another, and is AMD EPYC")


def test_a_baseline_without_any_arm_of_the_comparison_decides_nothing(tmp_path: Path) -> None:
    earlier = comparison(tmp_path / "earlier")
    for arm in earlier["arms"]:
        arm["label"] = f"other {arm['label']}"
    (check,) = against(earlier, comparison(tmp_path / "later"))
    whether = "whether any figure is more than 10% worse than the baseline's"
    assert check.line == f"undecided: {whether}: no arm of this comparison is in the baseline"


def test_an_arm_with_other_settings_than_the_baseline_s_decides_nothing(tmp_path: Path) -> None:
    earlier = comparison(tmp_path / "earlier")
    later = comparison(tmp_path / "later")
    earlier["arms"][0]["settings"]["orders"] = 5
    sentence = against(earlier, later)[0].sentence
    assert sentence.endswith(": other settings than the baseline's: orders was 5, and is 80000")


def test_a_baseline_says_how_weak_it_is(tmp_path: Path) -> None:
    earlier = comparison(tmp_path / "earlier")
    earlier["conditions"]["versions"]["python"] = "3.10.1"
    report = ComparisonGate((), Baseline("main", earlier)).report("folder", comparison(tmp_path / "later"))
    assert report.notes[0].startswith("weak: the baseline main was measured")
    assert "drift of the machine since then is in the ratios and not in their intervals" in report.notes[0]
    assert report.notes[1] == "other versions than the baseline's: python 3.10.1 then, 3.11.7 now"
    assert report.notes[2].startswith("p50 of a at 1,000 orders/s: 1.00 times the baseline's (")


def test_a_sentence_on_a_noisy_figure_says_which_side_is_the_baseline(tmp_path: Path) -> None:
    trial = plan().with_redo(True)
    for step in trial.steps:
        put(tmp_path, step, noise=NOISE)
    record = results(tmp_path, trial)
    check = against(record, record)[0]
    assert check.outcome == "undecided"
    assert "; a / the baseline main was 1" in check.sentence
