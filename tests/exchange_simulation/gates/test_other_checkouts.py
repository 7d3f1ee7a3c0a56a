"""A comparison against the code of another checkout: its arms, its gate, and real runs."""

from __future__ import annotations

import json
import shutil
import subprocess
import textwrap
from pathlib import Path
from typing import Any

import psutil
import pytest
from click.testing import CliRunner

from exchange_simulation.cli.main import main
from exchange_simulation.experiments.trials.checkouts import HERE, Checkout, with_twins
from exchange_simulation.experiments.trials.plan import TrialPlan, read_plan, write_plan
from exchange_simulation.experiments.trials.results import results
from exchange_simulation.gates.comparison_gate import ComparisonGate
from exchange_simulation.launching.errors import UserError
from exchange_simulation.reports.gate_outcomes import GateCheck
from tests.broker import is_gone
from tests.exchange_command import command
from tests.exchange_simulation.experiments.trials.sample_trials import arms, put_all
from tests.machine import until

STEADY = [100.0, 101.0, 99.0, 102.0, 98.0, 100.0, 101.0, 99.0, 100.0, 100.0]
PACKAGES = ("exchange", "transports", "gateway", "matching_engine", "stats_reporter", "spark", "exchange_simulation")


@pytest.fixture
def other(tmp_path: Path) -> Checkout:
    """A folder that is named like a checkout; its code is never run."""
    return Checkout(tmp_path / "main")


def checks_of(folder: Path, other: Checkout, factor: float) -> list[GateCheck]:
    """The checks of a trial in which contender a takes this many times as long as a of the other checkout."""
    folder.mkdir(exist_ok=True)
    trial = TrialPlan(arms=with_twins(arms(), other), repeats=10, seed=1)
    times = {"a": [factor * us for us in STEADY], "a by main": STEADY[::-1], "b": STEADY, "b by main": STEADY[::-1]}
    put_all(folder, trial, times)
    return list(ComparisonGate((), other, 0.1).report("folder", results(folder, trial)).checks)


def test_each_arm_has_a_twin_of_the_other_code(other: Checkout) -> None:
    doubled = with_twins(arms(), other)
    assert [arm.contender for arm in doubled[:2]] == ["a", "a by main"]
    assert [arm.checkout for arm in doubled[:2]] == [HERE, other.folder]
    assert doubled[0].settings == doubled[1].settings


def test_an_arm_is_compared_with_its_twin_and_with_arms_of_the_same_code(other: Checkout) -> None:
    trial = TrialPlan(arms=with_twins(arms(), other), repeats=10, seed=1)
    pairs = {(first.contender, second.contender) for first, second in trial.compared_arms}
    assert ("a", "a by main") in pairs
    assert ("a", "b by main") not in pairs


def test_code_that_is_surely_slower_than_the_other_fails_the_gate(tmp_path: Path, other: Checkout) -> None:
    outcomes = {check.requirement: check.outcome for check in checks_of(tmp_path / "trial", other, 1.5)}
    assert outcomes["p50 of a not more than 10% worse than the baseline's, at 1,000 orders/s"] == "failed"
    assert outcomes["engine CPU of a not more than 10% worse than the baseline's, at 1,000 orders/s"] == "failed"
    assert outcomes["p50 of b not more than 10% worse than the baseline's, at 1,000 orders/s"] == "passed"


def test_a_plan_with_another_checkout_is_resumed_with_it(tmp_path: Path, other: Checkout) -> None:
    trial = TrialPlan(arms=with_twins(arms(), other), repeats=2, seed=1)
    write_plan(tmp_path, trial)
    assert read_plan(tmp_path) == trial


def test_the_code_that_is_running_is_no_other_checkout() -> None:
    with pytest.raises(UserError, match="whose code is running: give the folder of another checkout"):
        with_twins(arms(), Checkout(HERE))


def test_a_folder_without_our_code_is_no_baseline(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    words = ["compare", "--against", str(tmp_path / "other"), "--results", str(tmp_path), "--dry-run"]
    outcome = CliRunner().invoke(main, words)
    assert outcome.exit_code == 2
    assert "It is no folder with this project's code either" in outcome.output


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of our code, with its compiled kernels."""
    folder = tmp_path / "older"
    for package in PACKAGES:
        shutil.copytree(HERE / package, folder / package)
    return folder


def test_both_codes_are_measured_with_the_settings_of_the_comparison(
    tmp_path: Path, copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("exchange.toml").write_text('[run]\nprices = "1..9"\n')
    monkeypatch.setenv("EXCHANGE_PACKING", "7")
    words = "compare --transports zeromq --rates 2k --seconds 0.05 --repeats 1 --no-spark --keep-noisy --name trial"
    outcome = CliRunner().invoke(main, [*words.split(), "--against", str(copy)], catch_exceptions=False)
    assert outcome.exit_code == 0, outcome.output
    runs = records(tmp_path / "results" / "trial", "01-")
    assert sorted(runs) == ["zeromq", "zeromq-by-older"]
    own, twin = ({**run["settings"], "url": ""} for run in runs.values())
    assert own == twin
    assert runs["zeromq"]["settings"]["packing"] == 7
    assert runs["zeromq"]["settings"]["prices"] == [450, 549]
    assert {run["status"] for run in runs.values()} <= {"complete", "saturated"}


def records(trial: Path, repeat: str) -> dict[str, Any]:
    """The records of a repeat's runs, by contender."""
    runs = {}
    for file in trial.glob(f"{repeat}*/run.json"):
        contender = file.parent.name.removeprefix(repeat).partition("-at-")[0]
        runs[contender] = json.loads(file.read_bytes())
    return runs


def stub(folder: Path, program: str) -> Path:
    """A checkout whose command does something else than measure."""
    package = folder / "exchange_simulation" / "cli"
    package.mkdir(parents=True)
    for init in (package.parent / "__init__.py", package / "__init__.py"):
        init.touch()
    (package / "__main__.py").write_text(textwrap.dedent(program))
    return folder


SHORT = ["compare", "--transports", "memory", "--rates", "1k", "--seconds", "0.05", "--repeats", "1", "--no-spark"]


def test_a_checkout_that_measures_nothing_is_one_sentence_and_gets_passwords(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EXCHANGE_AMQP_PASSWORD", "secret of the broker")
    monkeypatch.setenv("EXCHANGE_PACKING", "7")
    program = """\
        import os, sys
        print(os.environ.get("EXCHANGE_AMQP_PASSWORD"), os.environ.get("EXCHANGE_PACKING"), file=sys.stderr)
        sys.exit(1)
        """
    older = stub(tmp_path / "older", program)
    outcome = CliRunner().invoke(main, [*SHORT, "--against", str(older), "--results", str(tmp_path / "results")])
    assert outcome.exit_code == 2, outcome.output
    sentence = f"exchange run of the code in {older} made no record: secret of the broker None"
    assert sentence in " ".join(outcome.output.split())


def test_a_killed_comparison_leaves_no_run_of_the_other_code(tmp_path: Path) -> None:
    program = f"""\
        import os, time
        open({str(tmp_path / "pid")!r}, "w").write(str(os.getpid()))
        time.sleep(600)
        """
    older = stub(tmp_path / "older", program)
    words = [*SHORT, "--against", str(older), "--results", str(tmp_path / "results")]
    comparison = subprocess.Popen(command(*words), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text(), "a run of the other code")
    run = psutil.Process(int((tmp_path / "pid").read_text()))
    comparison.kill()
    comparison.wait()
    until(lambda: is_gone(run), "the end of that run")
