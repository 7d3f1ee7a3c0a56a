"""Gates from the command line: exit codes, files, baselines, and what Prometheus scrapes."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import orjson
import pytest
from click.testing import CliRunner, Result

from exchange_simulation.cli.main import main
from exchange_simulation.experiments.capacity.exchange_rates import objective_of
from exchange_simulation.experiments.comparison_arms import comparison_arms
from exchange_simulation.experiments.trials.checkouts import Checkout, with_twins
from exchange_simulation.experiments.trials.plan import TrialPlan, plan_as_dict
from exchange_simulation.experiments.trials.results import results as results_of_trial
from exchange_simulation.experiments.trials.study import NAGLE
from exchange_simulation.gates.gate_report import GATE_FAILED
from exchange_simulation.gates.objectives import run_report
from exchange_simulation.launching.files import json_bytes
from exchange_simulation.reports.gate_outcomes import FAILED, UNDECIDED
from tests.exchange_simulation.cli.results.kept_folders import put_run, put_trial
from tests.exchange_simulation.experiments.trials.sample_trials import put_all

SHORT_RUN = ("run", "--transport", "memory", "--orders", "2000", "--no-page")
AT_MAXIMUM = (*SHORT_RUN, "--rate", "max")
"""No order is due, so the run cannot be late on a busy machine."""


def exchange(*words: object) -> Result:
    return CliRunner().invoke(main, [*map(str, words)], env={"COLUMNS": "120"})


def test_a_run_that_passes_its_bound_ends_with_0_and_one_that_fails_it_with_3(tmp_path: Path) -> None:
    passed = exchange(*AT_MAXIMUM, "--results", tmp_path, "--slo", "handed over p50 <= 100s")
    assert passed.exit_code == 0, passed.output
    assert re.search(r"^passed: handed over p50 is [0-9,]+ us, not over 100s$", passed.stdout, re.MULTILINE)
    junit = tmp_path / "gate.xml"
    markdown = tmp_path / "gate.md"
    bounds = ("--slo", "handed over p50 <= 1ns, loss = 0", "--slo", "handed over max <= 100s")
    failed = exchange(*AT_MAXIMUM, "--results", tmp_path, *bounds, "--junit", junit, "--markdown", markdown)
    assert failed.exit_code == GATE_FAILED, failed.output
    assert ElementTree.parse(junit).getroot().attrib["tests"] == "3"
    assert re.search(
        r"\| \*\*failed\*\* \| handed over p50 is [0-9,]+ us( on a noisy machine)?, over 1ns \|", markdown.read_text()
    )
    assert "| passed | loss is 0, not over 0 |" in markdown.read_text()


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("--slo", "p99 <= soon"), "is not understood"),
        (("--slo", "p99 <= 1ms", "--orders", "500"), "needs 1,000 orders, and the run measures 499"),
        (("--slo", "p99 <= 1ms", "--orders", "1000"), "needs 1,000 orders, and the run measures 999"),
        (
            ("--slo", "p99 <= 1ms", "--rate", "1000", "--orders", "5500", "--warm-up", "4.5"),
            "needs 1,000 orders, and the run measures 499",
        ),
        (("--slo", "p50 <= 1ms", "--rate", "max"), "bound the time from handing over"),
    ],
)
def test_a_bound_that_cannot_be_judged_is_refused_before_the_run(
    words: tuple[str, ...], problem: str, tmp_path: Path
) -> None:
    refused = exchange(*SHORT_RUN, "--results", tmp_path, *words)
    assert refused.exit_code == 2
    assert problem in refused.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("status", "orders", "outcome", "sentence"),
    [
        ("complete", 999, UNDECIDED, "whether p99 is over 1ms: 999 orders were measured, and 1,000 are needed"),
        ("complete", 1_000, FAILED, "p99 is 1,204 us, over 1ms"),
        ("saturated", 999, FAILED, "p99 counts as over 1ms: the run is saturated: no reason known"),
    ],
)
def test_a_run_that_measured_too_few_orders_decides_nothing(
    status: str, orders: int, outcome: str, sentence: str
) -> None:
    """Regression: a run that measured 999 of 1,000 orders failed its bound, whatever its figure was."""
    times = {"due": {"p50": 100.0, "p99": 1_204.0, "max": 2_000.0, "count": orders}}
    record = {"name": "run", "status": status, "reasons": [], "completion_us": times}
    report = run_report("run", record, "headline", [objective_of("p99 <= 1ms")])
    assert [(check.outcome, check.sentence) for check in report.checks] == [(outcome, sentence)]
    assert report.exit_code(0) == (GATE_FAILED if outcome == FAILED else 0)
    assert bool(report.notes_on_undecided) is (outcome == UNDECIDED)


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("--fail-if", "p99 of amqp over 2x zeromq"), "'amqp' is not compared; there are zeromq, tcp"),
        (("--fail-if-slower", "10%"), "--fail-if-slower needs a baseline"),
        (("--against", "main"), "holds no such baseline or comparison"),
        (("--against", "main", "--fail-if-slower", "-5%"), "give percent above 0"),
    ],
)
def test_a_wrong_gate_is_refused_before_the_first_run(words: tuple[str, ...], problem: str, tmp_path: Path) -> None:
    refused = exchange("compare", "--results", tmp_path, *words)
    assert refused.exit_code == 2
    assert problem in refused.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_comparison_is_kept_as_a_baseline_and_is_not_listed_as_an_unknown_folder(tmp_path: Path) -> None:
    put_trial(tmp_path, "main")
    kept = exchange("results", "baseline", "main", "--results", tmp_path)
    assert kept.exit_code == 0, kept.output
    copy = tmp_path / "baselines" / "main.json"
    assert orjson.loads(copy.read_bytes()) == orjson.loads((tmp_path / "main" / "comparison.json").read_bytes())
    assert "not listed" not in exchange("results", "list", "--results", tmp_path).output


def test_a_run_is_no_baseline(tmp_path: Path) -> None:
    put_run(tmp_path, "first")
    refused = exchange("results", "baseline", "first", "--results", tmp_path)
    assert refused.exit_code == 2
    assert "holds no comparison.json" in refused.stderr


ARMS = comparison_arms(["zeromq", "tcp"], [1000.0, 2000.0], 5.0, {"max_price": 2000})


def put_baseline(results: Path, plan: TrialPlan) -> None:
    """Keep a made-up comparison of this plan as the baseline `main`."""
    trial = results / "measured"
    trial.mkdir(parents=True)
    put_all(trial, plan, {contender: [100.0] * plan.repeats for contender in plan.contenders})
    baseline = results / "baselines" / "main.json"
    baseline.parent.mkdir()
    baseline.write_bytes(json_bytes(results_of_trial(trial, plan)))


def test_without_options_a_comparison_measures_again_what_its_baseline_measured(tmp_path: Path) -> None:
    plan = TrialPlan(arms=ARMS, repeats=6, seed=7)
    put_baseline(tmp_path, plan)
    planned = exchange("compare", "--against", "main", "--results", tmp_path, "--dry-run", "--json")
    assert planned.exit_code == 0, planned.output
    assert orjson.loads(planned.stdout) == orjson.loads(json_bytes(plan_as_dict(plan.with_redo(True))))


def test_more_repeats_than_the_baseline_s_can_be_measured(tmp_path: Path) -> None:
    put_baseline(tmp_path, TrialPlan(arms=ARMS, repeats=6, seed=7))
    words = ("--against", "main", "--repeats", "20", "--results", tmp_path, "--dry-run", "--json")
    planned = orjson.loads(exchange("compare", *words).stdout)
    assert planned["repeats"] == 20
    assert [arm["contender"] for arm in planned["arms"]] == ["zeromq", "tcp", "zeromq", "tcp"]


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("--rates", "4000"), "the baseline has zeromq at 1,000 orders/s, tcp at 1,000 orders/s"),
        (("--rates", "1000"), "max_price was 2000, and is 999"),
        (("--rates", "1000", "--seconds", "2", "--max-price", "2000"), "orders was 5000, and is 2000"),
    ],
)
def test_a_comparison_that_cannot_be_held_to_its_baseline_is_refused_before_the_first_run(
    words: tuple[str, ...], problem: str, tmp_path: Path
) -> None:
    put_baseline(tmp_path, TrialPlan(arms=ARMS, repeats=6, seed=7))
    refused = exchange("compare", "--against", "main", *words, "--results", tmp_path, "--dry-run")
    assert refused.exit_code == 2
    assert "nothing of this comparison can be held to the baseline main: " in refused.stderr
    assert problem in refused.stderr


@pytest.mark.parametrize(
    ("plan", "problem"),
    [
        (TrialPlan(arms=ARMS, repeats=6, seed=1, study=NAGLE), "was made by exchange nagle"),
        (
            TrialPlan(arms=with_twins(ARMS, Checkout(Path("/older"))), repeats=6, seed=1),
            "was measured by the code in",
        ),
    ],
)
def test_a_baseline_that_compare_cannot_measure_again_asks_for_the_options(
    plan: TrialPlan, problem: str, tmp_path: Path
) -> None:
    put_baseline(tmp_path, plan)
    refused = exchange("compare", "--against", "main", "--results", tmp_path, "--dry-run")
    assert refused.exit_code == 2
    assert problem in refused.stderr
    assert "type the options of the comparison yourself" in refused.stderr


SAMPLE_LINE = re.compile(r'[a-z_]+\{([a-z_]+="([^"\\\n]|\\.)*",?)*\} [0-9.e+-]+')


def test_exported_figures_are_what_prometheus_reads(tmp_path: Path) -> None:
    put_run(tmp_path, "first", us=250.0, noise={"window_s": 1.0, "share_of_all_cpus": 0.25})
    put_trial(tmp_path, "second", us=100.0)
    exported = exchange("results", "export", "--prometheus", "--results", tmp_path)
    assert exported.exit_code == 0, exported.output
    lines = exported.stdout.splitlines()
    for line in lines:
        assert line.startswith(("# HELP ", "# TYPE ")) or SAMPLE_LINE.fullmatch(line), line
    labels = 'run="first",transport="zeromq",rate="8000"'
    assert f'exchange_run_completion_seconds{{{labels},clock="due",quantile="0.5"}} 0.00026' in lines
    assert f"exchange_run_noise_share{{{labels}}} 0.25" in lines
    assert not [line for line in lines if 'quantile="0.999"' in line and "first" in line], "1,999 orders have no p99.9"
    b_of_trial = 'comparison="second",contender="b",block="at 1,000 orders/s",rate="1000",clock="due",quantile="0.5"'
    assert f"exchange_arm_completion_seconds{{{b_of_trial}}} 0.0002" in lines
    assert len([line for line in lines if line.startswith("# TYPE exchange_run_completion_seconds")]) == 1


def test_an_export_into_a_file_appears_whole(tmp_path: Path) -> None:
    put_run(tmp_path / "results", "first")
    file = tmp_path / "exchange.prom"
    words = ("results", "export", "first", "--prometheus", "--output", file, "--results", tmp_path / "results")
    assert exchange(*words).exit_code == 0
    assert file.read_text().startswith("# HELP exchange_run_completion_seconds")
    assert exchange("results", "export", "--results", tmp_path / "results").exit_code == 2


def test_the_dashboard_draws_metrics_that_are_exported() -> None:
    from exchange_simulation.reports.prometheus import HELP

    dashboard = (Path(__file__).parents[3] / "examples" / "grafana-dashboard.json").read_text()
    drawn = set(re.findall(r"exchange_[a-z_]+", dashboard))
    assert drawn <= set(HELP)
    assert len(drawn) >= 4
