"""The outcomes of a gate on pages, in `exchange results show` and in `exchange report`."""

from __future__ import annotations

import html
import re
from pathlib import Path

from click.testing import CliRunner, Result

from exchange_simulation.cli.main import main
from exchange_simulation.experiments.trials.plan import write_plan
from exchange_simulation.experiments.trials.results import results as results_of_trial
from exchange_simulation.gates.gate_report import GATE_FAILED
from exchange_simulation.launching.files import json_bytes
from exchange_simulation.reports.comparison.page import page_html
from exchange_simulation.reports.gate_outcomes import FILE, GateCheck, GateOutcomes, read_outcomes
from tests.exchange_simulation.cli.results.kept_folders import put_trial
from tests.exchange_simulation.experiments.trials.sample_trials import plan, put_all

CONDITIONS = (
    "--fail-if",
    "p50 of b over 3x a",
    "--fail-if",
    "p50 of b over 1.5x a",
    "--fail-if",
    "p50 of b over 2x a",
)
ENDS_OF_SENTENCES = (
    ", over 1.5, at 1,000 orders/s",
    ", perhaps over 2, at 1,000 orders/s",
    ", not over 3, at 1,000 orders/s",
)

TIMES_OF_A = [100.0, 101.0, 99.0, 102.0, 98.0, 100.0, 101.0, 99.0, 100.0, 100.0]
TIMES_OF_B = [2 * us for us in reversed(TIMES_OF_A)]


def exchange(*words: object) -> Result:
    return CliRunner().invoke(main, [*map(str, words)], env={"COLUMNS": "120"})


def put_judged_trial(results: Path) -> Path:
    """Put a trial in which contender b takes twice as long as a, in some repeats more and in some less."""
    folder = results / "main"
    folder.mkdir()
    write_plan(folder, plan())
    put_all(folder, plan(), {"a": TIMES_OF_A, "b": TIMES_OF_B})
    return folder


def judged_again(results: Path, *conditions: str) -> Result:
    """Judge the trial `main`, whose runs are all there: no run is made."""
    return exchange("compare", "--resume", "main", "--no-spark", "--results", results, *conditions)


def words_of(page: str) -> str:
    return " ".join(html.unescape(re.sub("<[^>]*>", " ", page)).split())


def gate_lines(output: str) -> list[str]:
    return [
        line for line in output.splitlines() if line.startswith(("passed: ", "failed: ", "undecided: ", "the exit"))
    ]


def test_page_and_results_show_what_became_of_each_condition_of_a_comparison(tmp_path: Path) -> None:
    folder = put_judged_trial(tmp_path)
    judged = judged_again(tmp_path, *CONDITIONS)
    assert judged.exit_code == GATE_FAILED, judged.output
    assert [line.partition(":")[0] for line in gate_lines(judged.output)[:3]] == ["passed", "failed", "undecided"]
    page = (folder / "comparison.html").read_text()
    words = words_of(page)
    assert "Gate: 1 failed, 1 undecided, 1 passed" in words
    places = [words.index(end) for end in ENDS_OF_SENTENCES]
    assert places == sorted(places), "what failed comes first"
    assert "failed p50 of b is 2.0 times a's (" in words
    assert "The exit code says nothing about 'p50 of b over 2x a'" in words
    assert words.index("Gate: ") < words.index("Every verdict")
    shown = exchange("results", "show", "main", "--results", tmp_path)
    assert gate_lines(shown.output) == gate_lines(judged.output)
    assert gate_lines(exchange("report", folder).output) == gate_lines(judged.output)
    assert (folder / "comparison.html").read_text() == page


def test_outcomes_of_an_earlier_gate_are_gone_once_a_trial_was_resumed_without_conditions(tmp_path: Path) -> None:
    folder = put_judged_trial(tmp_path)
    assert judged_again(tmp_path, *CONDITIONS).exit_code == GATE_FAILED
    assert judged_again(tmp_path).exit_code == 0
    assert read_outcomes(folder).is_empty
    assert "Gate: " not in (folder / "comparison.html").read_text()


def test_a_run_s_page_has_its_bounds(tmp_path: Path) -> None:
    words = ("--transport", "memory", "--orders", 2000, "--rate", "max", "--name", "first", "--results", tmp_path)
    bounds = ("--slo", "handed over p50 <= 100s", "--slo", "handed over p50 <= 1ns")
    measured = exchange("run", *words, *bounds)
    assert measured.exit_code == GATE_FAILED, measured.output
    page = words_of((tmp_path / "first" / "report.html").read_text())
    assert "Gate: 1 failed, 1 passed" in page
    assert page.index("failed handed over p50 is ") < page.index("passed handed over p50 is ")
    assert gate_lines(exchange("results", "show", "first", "--results", tmp_path).output) == gate_lines(measured.output)


def test_a_page_without_a_gate_says_nothing_of_one_and_a_long_gate_is_folded(tmp_path: Path) -> None:
    put_all(tmp_path, plan(), {"a": TIMES_OF_A, "b": TIMES_OF_B})
    record = results_of_trial(tmp_path, plan())
    assert 'id="gate"' not in page_html(record)
    checks = [
        GateCheck(condition="p50", requirement="p50", outcome="passed", sentence=f"p50 <b>{number}")
        for number in range(12)
    ]
    page = page_html(record, GateOutcomes(checks=checks))
    assert "<summary>2 conditions more</summary>" in page
    assert "p50 &lt;b&gt;11" in page


def test_a_damaged_gate_is_named(tmp_path: Path) -> None:
    folder = put_trial(tmp_path, "main")
    check = {"condition": "p50", "requirement": "p50", "outcome": "won", "sentence": "1 us"}
    (folder / FILE).write_bytes(json_bytes({"schema": 1, "checks": [check], "baseline_notes": []}))
    shown = exchange("results", "show", "main", "--results", tmp_path)
    assert shown.exit_code == 1
    assert f"{folder / FILE} is damaged" in shown.stderr
