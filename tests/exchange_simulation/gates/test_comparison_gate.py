"""Conditions of a comparison: between its contenders, and against a baseline."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from exchange_simulation.experiments.trials.plan import TrialPlan
from exchange_simulation.experiments.trials.results import results
from exchange_simulation.gates.baselines import Baseline
from exchange_simulation.gates.checks import GATE_MISSED, GateCheck
from exchange_simulation.gates.comparison_gate import ComparisonGate
from exchange_simulation.gates.conditions import condition_of
from exchange_simulation.launching.errors import UserError
from tests.exchange_simulation.experiments.trials.sample_trials import plan, put, put_all

STEADY = [100.0, 101.0, 99.0, 102.0, 98.0, 100.0, 101.0, 99.0, 100.0, 100.0]
NOISE = {"window_s": 5.0, "share_of_all_cpus": 0.4}


def comparison(folder: Path, factor_of_b: float = 3.0, trial: TrialPlan | None = None) -> dict[str, Any]:
    """A trial in which contender b takes so many times as long as a."""
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


def test_a_ratio_surely_over_the_factor_is_missed(tmp_path: Path) -> None:
    check = only_check(gate("p50 of b over 2x a"), comparison(tmp_path))
    assert check.outcome == "missed"
    assert check.name == "p50 of b over 2x a, at 1,000 orders/s"
    assert check.words.startswith("3.0x (")


def test_a_ratio_surely_within_the_factor_is_held(tmp_path: Path) -> None:
    assert only_check(gate("p50 of b over 4x a"), comparison(tmp_path)).outcome == "held"


def test_an_interval_that_contains_the_factor_is_undecided(tmp_path: Path) -> None:
    assert only_check(gate("p50 of b over 3x a"), comparison(tmp_path)).outcome == "undecided"


def test_too_few_repeats_decide_nothing(tmp_path: Path) -> None:
    check = only_check(gate("p50 of b over 2x a"), comparison(tmp_path, trial=plan(repeats=5)))
    assert check.outcome == "undecided"
    assert check.words.startswith("cannot tell from 5 repeats, 6 are needed")


def test_noisy_runs_decide_nothing(tmp_path: Path) -> None:
    trial = plan().with_redo(True)
    for step in trial.steps:
        put(tmp_path, step, us=300.0 if step.arm.contender == "b" else 100.0, noise=NOISE)
    report = gate("p50 of b over 2x a").report("folder", results(tmp_path, trial))
    assert [check.outcome for check in report.checks] == ["undecided"]
    assert report.checks[0].words.startswith("too noisy to say")
    assert report.notes[0].startswith("the machine: others took more than 5%")
    assert report.exit_code(0) == 0


def test_a_figure_under_its_bound_can_fail_too(tmp_path: Path) -> None:
    assert only_check(gate("p50 of a under 0.5x b"), comparison(tmp_path)).outcome == "missed"
    assert only_check(gate("p50 of a under 0.2x b"), comparison(tmp_path / "other")).outcome == "held"


def test_a_time_is_a_bound_too(tmp_path: Path) -> None:
    record = comparison(tmp_path)
    assert only_check(gate("p50 of b over 200us"), record).outcome == "missed"
    assert only_check(gate("p50 of b over 1ms"), record).outcome == "held"


def test_each_rate_has_a_check(tmp_path: Path) -> None:
    record = comparison(tmp_path, trial=plan(rates=(1000.0, 2000.0)))
    report = gate("p50 of b over 2x a").report("folder", record)
    assert len(report.checks) == 2
    assert report.exit_code(0) == GATE_MISSED
    assert report.exit_code(1) == 1, "a trial that lacks runs says so first"


def test_a_contender_that_lost_its_rate_is_over_every_bound(tmp_path: Path) -> None:
    for step in plan().steps:
        is_b = step.arm.contender == "b"
        put(tmp_path, step, status="saturated" if is_b else "complete")
    check = only_check(gate("p50 of b over 2x a"), results(tmp_path, plan()))
    assert (check.outcome, check.words) == ("missed", "b did not keep its rate")


def test_names_and_figures_are_known_in_any_case() -> None:
    condition = condition_of("P99.9 of A over 1.5x B", ["a", "b"])
    assert (condition.side, condition.other, condition.factor) == ("a", "b", 1.5)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("p99 > 2x", "it takes FIGURE of NAME over FACTORx NAME"),
        ("p98 of a over 2x b", "'p98' is no figure; there are mean, p50"),
        ("p99 of c over 2x b", "'c' is not compared; there are a, b"),
        ("p99 of a over 2x c", "'c' is not compared"),
        ("p99 of a over 0x b", "the factor is 0"),
        ("p99 of a over soon", "'soon' is not understood"),
        ("cpu of a over 2ms", "cpu is no time"),
    ],
)
def test_a_wrong_condition_is_refused_before_the_first_run(text: str, problem: str) -> None:
    with pytest.raises(UserError) as error:
        condition_of(text, ["a", "b"])
    assert problem in error.value.message


def against(earlier: dict[str, Any], record: dict[str, Any], slower_by: float | None = 0.1) -> list[GateCheck]:
    return list(ComparisonGate((), Baseline("main", earlier), slower_by).report("folder", record).checks)


def test_a_slower_figure_is_missed_and_an_equal_one_is_held(tmp_path: Path) -> None:
    earlier = comparison(tmp_path / "earlier", factor_of_b=3.0)
    later = comparison(tmp_path / "later", factor_of_b=3.6)
    outcomes = {check.name: check.outcome for check in against(earlier, later) if check.name.startswith("p50")}
    assert outcomes == {
        "p50 of a at 1,000 orders/s not 10% worse than the baseline's": "held",
        "p50 of b at 1,000 orders/s not 10% worse than the baseline's": "missed",
    }


def test_a_baseline_of_another_machine_decides_nothing(tmp_path: Path) -> None:
    earlier = comparison(tmp_path / "earlier", factor_of_b=3.0)
    later = comparison(tmp_path / "later", factor_of_b=6.0)
    earlier["conditions"]["host"]["cpu"] = "another"
    checks = against(earlier, later)
    assert {check.outcome for check in checks} == {"undecided"}
    assert checks[0].words == "the baseline is of another machine: cpu was another, and is AMD EPYC"


def test_an_arm_with_other_settings_than_the_baseline_s_decides_nothing(tmp_path: Path) -> None:
    earlier = comparison(tmp_path / "earlier")
    later = comparison(tmp_path / "later")
    earlier["arms"][0]["settings"]["orders"] = 5
    assert against(earlier, later)[0].words == "other settings than the baseline's: orders was 5, and is 80000"


def test_a_baseline_says_how_weak_it_is(tmp_path: Path) -> None:
    earlier = comparison(tmp_path / "earlier")
    earlier["conditions"]["versions"]["python"] = "3.10.1"
    report = ComparisonGate((), Baseline("main", earlier)).report("folder", comparison(tmp_path / "later"))
    assert report.notes[0].startswith("weak: the baseline main was measured")
    assert "drift of the machine since then is in the ratios and not in their intervals" in report.notes[0]
    assert report.notes[1] == "other versions than the baseline's: python 3.10.1 then, 3.11.7 now"
    assert report.notes[2].startswith("p50 of a at 1,000 orders/s: 1.00 times the baseline's (")
