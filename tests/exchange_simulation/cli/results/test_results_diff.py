"""`exchange results diff`: conditions before figures, and no verdict from one run each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest
from kept_folders import put_run, put_trial, results


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Path:
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


def diff(there: Path, *words: object) -> dict[str, Any]:
    outcome = results(there, "diff", *words, "--json")
    assert outcome.exit_code == 0, outcome.output
    return orjson.loads(outcome.stdout)


def test_differing_settings_host_and_versions_come_before_figures(there: Path) -> None:
    conditions = diff(there, "first", "second")["conditions"]
    assert conditions == [
        {"field": "settings.packing", "first": 1, "second": 8},
        {"field": "versions.python", "first": "3.11.7", "second": "3.12.1"},
    ]  # neither the free port nor the load
    output = results(there, "diff", "first", "second").stdout
    assert output.index("settings.packing") < output.index("versions.python") < output.index("completion p50")
    assert max(map(len, output.splitlines())) <= 80


def test_a_run_that_its_quota_stopped_differs_from_one_that_it_did_not(there: Path, tmp_path: Path) -> None:
    throttled = put_run(tmp_path, "throttled", us=100.0, noise={"throttled_s": 0.4, "throttled_periods": 4})
    assert diff(there, "first", throttled)["conditions"] == [{"field": "noise.throttled_s", "second": 0.4}]
    assert "noise.throttled_s  absent  0.4 s" in results(there, "diff", "first", throttled).stdout


def test_runs_of_the_same_conditions_are_said_to_be(there: Path) -> None:
    output = " ".join(results(there, "diff", "first", "first").stdout.split())
    assert "settings, host and versions are the same" in output
    assert "all counts are the same; orders are the same, answers are the same (by their checksums)" in output


def test_a_figure_stands_beside_the_other_s_with_its_ratio(there: Path) -> None:
    figures = {figure["metric"]: figure for figure in diff(there, "first", "second")["figures"]}
    due = figures["due_p50_us"]
    assert (due["first"], due["second"], due["ratio"]) == (110.0, 160.0, pytest.approx(160 / 110))
    assert {"handed_over_p99_us", "lag_p99_us", "orders_per_s", "cpu_s_per_million"} < figures.keys()
    line = next(
        line for line in results(there, "diff", "first", "second").stdout.splitlines() if "p50 from due" in line
    )
    assert line.split()[-3:] == ["110", "160", "1.45"]


def test_one_run_each_carries_no_verdict(there: Path) -> None:
    output = " ".join(results(there, "diff", "first", "second").stdout.split())
    assert "One run each carries no verdict" in output
    assert "Use exchange compare." in output


def test_a_run_that_is_no_good_says_so_at_the_top_and_lacks_what_it_lacks(there: Path) -> None:
    lines = results(there, "diff", "first", "broken").stdout.splitlines()
    assert "partial" in lines[3]
    assert "engine: killed" in lines[4]
    found = diff(there, "first", "broken")
    assert found["counts"][:2] == [
        {"field": "orders_sent", "first": 1000, "second": 10},
        {"field": "orders_received", "first": 1000},
    ]
    assert found["same_streams"] == {"orders": None, "answers": None}
    due = next(figure for figure in found["figures"] if figure["metric"] == "due_p50_us")
    assert (due["first"], "second" in due, "ratio" in due) == (110.0, False, False)


def test_a_run_and_a_trial_are_not_held_against_each_other(there: Path) -> None:
    refused = results(there, "diff", "first", "trial")
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "first is a run and" in " ".join(refused.stderr.split())


def test_trials_show_differing_plans_and_medians_of_shared_arms(there: Path) -> None:
    found = diff(there, "trial", "later")
    assert found["conditions"] == [{"field": "repeats", "first": 2, "second": 3}]
    assert [arm["label"] for arm in found["arms"]] == ["a at 1,000 orders/s"]
    medians = [found["arms"][0][side]["metrics"]["due_p50_us"]["median"] for side in ("first", "second")]
    assert medians == [100.0, 120.0]
    assert found["only_in"] == {
        "first": ["b at 1,000 orders/s", "a at 2,000 orders/s", "b at 2,000 orders/s"],
        "second": [],
    }
    output = results(there, "diff", "trial", "later").stdout
    assert "a at 1,000 orders/s  100 (100..100)  120 (120..120)" in output
    assert "only in A: b at 1,000 orders/s" in output
    assert "only arms of one trial are held against each other" in " ".join(output.split())


def test_arms_of_one_label_with_other_settings_are_said_to_differ(there: Path, tmp_path: Path) -> None:
    trial = put_trial(tmp_path, "other")
    found = orjson.loads((trial / "comparison.json").read_bytes())
    found["arms"][0]["settings"]["timeout_s"], found["arms"][0]["held"] = 20.0, False
    (trial / "comparison.json").write_bytes(orjson.dumps(found))
    output = results(there, "diff", "trial", str(trial)).stdout
    assert "settings.timeout_s of a at 1,000 orders/s  10 s  20 s" in output
    assert "in B the rate was not held by: a at 1,000 orders/s" in output
