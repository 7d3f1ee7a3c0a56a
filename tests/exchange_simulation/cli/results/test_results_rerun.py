"""`exchange results rerun`: once more from its own record, or a sentence that says why not."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import orjson
import pytest
from kept_folders import put_bytes, put_run, put_trial, record, results

from exchange.settings import RunSettings
from exchange_simulation.experiments.trials import trial
from exchange_simulation.experiments.trials.plan import TrialPlan, write_plan
from exchange_simulation.launching.record.machine import host_facts, versions
from tests.exchange_command import exchange_in_process, run_exchange_in_process
from tests.exchange_simulation.experiments.trials.sample_trials import plan

HERE = {"host": {**host_facts(), "load_before": [99.0, 98.0, 97.0]}, "versions": versions()}
"""This machine, once when it was busy."""


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The arguments of the run that would have started."""
    output: dict[str, Any] = {}

    def run(settings: RunSettings, results: str, name: str | None, **how: bool) -> int:
        output.update(settings=settings, results=results, name=name, **how)
        return 0

    def run_trial(planned: TrialPlan, results: str, name: str | None, *_: object) -> SimpleNamespace:
        output.update(plan=planned, results=results, name=name)
        return SimpleNamespace(exit_code=0)

    def make_tables(_trial: object, no_spark: bool, _as_json: bool) -> None:
        output.update(with_spark=not no_spark)

    monkeypatch.setattr("exchange_simulation.cli.run.run", run)
    monkeypatch.setattr(trial, "run_trial", run_trial)
    monkeypatch.setattr("exchange_simulation.cli.results.trial.make_tables", make_tables)
    return output


def test_a_rerun_has_the_same_settings_and_streams(tmp_path: Path) -> None:
    words = ("--transport", "memory", "--rate", 20_000, "--orders", 400, "--seed", 7, "--packing", 3, "--name", "first")
    first = run_exchange_in_process(tmp_path, *words).record
    outcome = exchange_in_process(
        "results", "rerun", "first", "--name", "second", "--results", tmp_path, "--no-spark", "--json"
    )
    assert outcome.code == 0, outcome.err
    assert outcome.out.encode() == (tmp_path / "second" / "run.json").read_bytes()
    assert outcome.record["checksums"] == first["checksums"]
    assert {**outcome.record["settings"], "url": 0} == {**first["settings"], "url": 0}
    assert "unlike then" not in outcome.err


def test_a_rerun_has_the_recorded_settings_without_the_url(started: dict[str, Any], tmp_path: Path) -> None:
    recorded = {"transport": "tcp", "orders_per_s": None, "window": 5, "nagle": ("engine",), "cpus": {"gateway": 1}}
    put_run(tmp_path, "first", settings=recorded, **HERE)
    outcome = results(tmp_path, "rerun", "first", "--name", "again")
    assert outcome.exit_code == 0
    assert outcome.output == ""
    assert started["settings"] == RunSettings(**recorded)
    assert started["name"] == "again"
    assert not started["with_spark"]
    assert not started["as_json"]


def test_a_setting_newer_than_the_record_has_its_default(started: dict[str, Any], tmp_path: Path) -> None:
    old = record("old", settings={"packing": 8})
    del old["settings"]["capture"], old["settings"]["network"]
    put_bytes(tmp_path, "old", orjson.dumps(old))
    assert results(tmp_path, "rerun", "old").exit_code == 0
    assert started["settings"] == RunSettings(packing=8)


def test_a_run_inside_of_a_trial_is_run_again_beside_it(started: dict[str, Any], tmp_path: Path) -> None:
    trial = put_trial(tmp_path, "trial")
    inner = next(path.name for path in trial.iterdir() if path.is_dir())
    assert results(tmp_path, "rerun", f"trial/{inner}").exit_code == 0
    assert started["results"] == str(tmp_path)


def test_a_rerun_names_differing_conditions_in_one_line(started: dict[str, Any], tmp_path: Path) -> None:
    elsewhere = {"host": {**HERE["host"], "cpu": "Z80"}, "versions": {**HERE["versions"], "numba": "0.1"}}
    by_hand = record("by-hand", **elsewhere)
    by_hand["settings"]["url"] = "zeromq+tcp://hostb:7000"
    put_bytes(tmp_path, "by-hand", orjson.dumps(by_hand))
    outcome = results(tmp_path, "rerun", "by-hand")
    assert outcome.stdout == ""
    [line] = outcome.stderr.splitlines()
    assert f"host.cpu was Z80, is {HERE['host']['cpu']}" in line
    assert f"versions.numba was 0.1, is {HERE['versions']['numba']}" in line
    assert "the components met at hostb:7000, and now do on this machine" in line
    assert "load" not in line


def test_a_finished_or_killed_trial_is_run_again_with_its_plan(started: dict[str, Any], tmp_path: Path) -> None:
    put_trial(tmp_path, "trial")
    put_trial(tmp_path, "killed", finished=False)
    for name in ("trial", "killed"):
        assert results(tmp_path, "rerun", name, "--name", "again").exit_code == 0
        assert started.pop("plan") == plan(repeats=2)
        assert started["name"] == "again"


def test_the_rerun_of_a_resumed_trial_was_not_resumed(started: dict[str, Any], tmp_path: Path) -> None:
    trial = put_trial(tmp_path, "trial")
    write_plan(trial, replace(plan(repeats=2), resumed=2))
    assert results(tmp_path, "rerun", "trial", "--name", "again").exit_code == 0
    assert started["plan"] == plan(repeats=2)


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"url": None}, "does not say what was run: its settings lack transport, orders_per_s, orders, seed"),
        (None, "does not say what was run"),
        ({**RunSettings().as_dict(), "colour": "red"}, "another version of exchange: .* no setting colour"),
        ({**RunSettings().as_dict(), "packing": 0}, "nothing can be run with: packing is 0"),
        ({**RunSettings().as_dict(), "nagle": 5}, "nothing can be run with"),
    ],
)
def test_a_record_of_incomplete_or_unknown_settings_is_refused(
    settings: dict[str, Any] | None, why: str, started: dict[str, Any], tmp_path: Path
) -> None:
    put_bytes(tmp_path, "first", orjson.dumps(record("first") | {"settings": settings}))
    refused = results(tmp_path, "rerun", "first")
    assert refused.exit_code == 2
    assert re.search(why, " ".join(refused.stderr.split()))
    assert started == {}


def test_a_run_without_a_record_is_not_run_again(started: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "killed" / "spool").mkdir(parents=True)
    refused = results(tmp_path, "rerun", "killed")
    assert refused.exit_code == 1
    assert started == {}
    assert "the run goes on, or was killed" in refused.stderr


def test_a_plan_of_a_newer_version_is_not_run_again(started: dict[str, Any], tmp_path: Path) -> None:
    trial = put_trial(tmp_path, "trial")
    written = orjson.loads((trial / "plan.json").read_bytes())
    (trial / "plan.json").write_bytes(orjson.dumps({**written, "schema": 2}))
    refused = results(tmp_path, "rerun", "trial")
    assert refused.exit_code == 1
    assert started == {}
    assert "schema 2" in refused.stderr
