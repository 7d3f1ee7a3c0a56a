"""`exchange results diff`: conditions before figures, and no verdict from one run each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest
from kept_folders import put_run, put_trial, results


@pytest.fixture(scope="module")
def results_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results")
    put_run(folder, "first", us=100.0)
    put_run(folder, "second", us=150.0, settings={"packing": 8}, versions={"python": "3.12.1", "exchange": "0.1.0"})
    put_run(
        folder,
        "broken",
        status="partial",
        reasons=["engine: killed"],
        checksums={"hash": "xxh64"},
        counts={"orders_sent": 10},
        completion_us={},
        lag_us={},
    )
    put_trial(folder, "trial", 100.0, rates=(1000.0, 2000.0))
    put_trial(folder, "later", 120.0, contenders=1, repeats=3)
    return folder


def diff(results_folder: Path, *words: object) -> dict[str, Any]:
    outcome = results(results_folder, "diff", *words, "--json")
    assert outcome.exit_code == 0, outcome.output
    return orjson.loads(outcome.stdout)


def test_differing_settings_and_versions_are_printed_before_figures(results_folder: Path) -> None:
    conditions = diff(results_folder, "first", "second")["conditions"]
    assert conditions == [
        {"field": "settings.packing", "first": 1, "second": 8},
        {"field": "versions.python", "first": "3.11.7", "second": "3.12.1"},
    ], "the free port and the load differ always, so they are left out"
    output = results(results_folder, "diff", "first", "second").stdout
    assert output.index("settings.packing") < output.index("versions.python") < output.index("completion p50")
    assert max(map(len, output.splitlines())) <= 80


def test_time_that_a_quota_took_from_one_run_is_a_condition(results_folder: Path, tmp_path: Path) -> None:
    throttled = put_run(tmp_path, "throttled", us=100.0, noise={"throttled_s": 0.4, "throttled_periods": 4})
    assert diff(results_folder, "first", throttled)["conditions"] == [{"field": "noise.throttled_s", "second": 0.4}]
    assert "noise.throttled_s  absent  0.4 s" in results(results_folder, "diff", "first", throttled).stdout


def test_runs_of_the_same_conditions_are_called_the_same(results_folder: Path) -> None:
    output = " ".join(results(results_folder, "diff", "first", "first").stdout.split())
    assert "settings, host and versions are the same" in output
    assert "all counts are the same; orders are the same, answers are the same (by their checksums)" in output


def test_figures_of_two_runs_are_printed_with_their_ratio(results_folder: Path) -> None:
    figures = {figure["metric"]: figure for figure in diff(results_folder, "first", "second")["figures"]}
    due = figures["due_p50_us"]
    assert due["first"] == 110.0
    assert due["second"] == 160.0
    assert due["ratio"] == pytest.approx(160 / 110)
    assert {"handed_over_p99_us", "lag_p99_us", "orders_per_s", "cpu_s_per_million"} < figures.keys()
    line = next(
        line
        for line in results(results_folder, "diff", "first", "second").stdout.splitlines()
        if "p50 from due" in line
    )
    assert line.split()[-3:] == ["110", "160", "1.45"]


def test_one_run_each_carries_no_verdict(results_folder: Path) -> None:
    output = " ".join(results(results_folder, "diff", "first", "second").stdout.split())
    assert "One run each carries no verdict" in output
    assert "Use exchange compare." in output


def test_a_partial_run_is_marked_first_and_lacks_its_missing_figures(results_folder: Path) -> None:
    lines = results(results_folder, "diff", "first", "broken").stdout.splitlines()
    assert "partial" in lines[3]
    assert "engine: killed" in lines[4]
    difference = diff(results_folder, "first", "broken")
    assert difference["counts"][:2] == [
        {"field": "orders_sent", "first": 1000, "second": 10},
        {"field": "orders_received", "first": 1000},
    ]
    assert difference["same_streams"] == {"orders": None, "answers": None}
    due = next(figure for figure in difference["figures"] if figure["metric"] == "due_p50_us")
    assert due["first"] == 110.0
    assert "second" not in due
    assert "ratio" not in due


def test_a_run_is_not_compared_with_a_trial(results_folder: Path) -> None:
    refused = results(results_folder, "diff", "first", "trial")
    assert refused.exit_code == 2
    assert refused.stdout == ""
    assert "first is a run and" in " ".join(refused.stderr.split())


def test_trials_show_differing_plans_and_medians_of_shared_arms(results_folder: Path) -> None:
    difference = diff(results_folder, "trial", "later")
    assert difference["conditions"] == [{"field": "repeats", "first": 2, "second": 3}]
    [arm] = difference["arms"]
    assert arm["label"] == "a at 1,000 orders/s"
    assert arm["first"]["metrics"]["due_p50_us"]["median"] == 100.0
    assert arm["second"]["metrics"]["due_p50_us"]["median"] == 120.0
    assert difference["only_in"] == {
        "first": ["b at 1,000 orders/s", "a at 2,000 orders/s", "b at 2,000 orders/s"],
        "second": [],
    }
    output = results(results_folder, "diff", "trial", "later").stdout
    assert "a at 1,000 orders/s  100 (100..100)  120 (120..120)" in output
    assert "only in A: b at 1,000 orders/s" in output
    assert "only arms of one trial are held against each other" in " ".join(output.split())


def test_differing_settings_of_arms_of_one_label_are_named(results_folder: Path, tmp_path: Path) -> None:
    trial = put_trial(tmp_path, "other")
    comparison = orjson.loads((trial / "comparison.json").read_bytes())
    comparison["arms"][0]["settings"]["timeout_s"] = 20.0
    comparison["arms"][0]["held"] = False
    (trial / "comparison.json").write_bytes(orjson.dumps(comparison))
    output = results(results_folder, "diff", "trial", str(trial)).stdout
    assert "settings.timeout_s of a at 1,000 orders/s  10 s  20 s" in output
    assert "in B the rate was not held by: a at 1,000 orders/s" in output
