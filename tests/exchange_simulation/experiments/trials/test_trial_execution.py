"""Making the runs of a plan: failures, interruptions, and the remaining steps."""

from __future__ import annotations

import io
import os
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest
from rich.console import Console
from sample_trials import plan, put_all, record_of

from exchange.settings import RunSettings
from exchange_simulation.experiments.trials.execution import Progress, execute, remaining_steps
from exchange_simulation.experiments.trials.observations import observe
from exchange_simulation.experiments.trials.plan import TrialPlan
from exchange_simulation.launching.errors import UserError
from exchange_simulation.launching.interrupts import interruptible

PLAN = plan(repeats=3)
"""2 warm-ups and 6 runs."""


class Scripted:
    """Measures at once, and at the run with a given number does something else."""

    def __init__(self, at: int = 0, instead: Callable[[], Any] = dict) -> None:
        self.names: list[str] = []
        self._at = at
        self._instead = instead

    def __call__(self, folder: Path, settings: RunSettings) -> dict[str, Any]:
        self.names.append(folder.name.rpartition("-")[0])
        changed = {}
        if len(self.names) == self._at:
            folder.rmdir()
            changed = self._instead()
            folder.mkdir()
        record = record_of(folder, settings, **changed)
        (folder / "run.json").write_bytes(orjson.dumps(record))
        return record


def run_steps(trial: Path, measure: Scripted, trial_plan: TrialPlan = PLAN) -> bool:
    steps = remaining_steps(trial, trial_plan)
    return execute(trial, trial_plan, steps, measure, Progress(steps))


def refuse() -> dict[str, Any]:
    raise UserError("nobody listens")


def press_ctrl_c() -> dict[str, Any]:
    raise KeyboardInterrupt


def take_ctrl_c_as_a_run_does() -> dict[str, Any]:
    try:
        with interruptible():
            os.kill(os.getpid(), signal.SIGINT)
    except KeyboardInterrupt:
        return {"status": "partial", "reasons": ["interrupted"]}
    return {}


def test_warm_ups_come_first_and_then_the_plan(tmp_path: Path) -> None:
    measure = Scripted()
    assert run_steps(tmp_path, measure)
    assert measure.names == [step.name for step in (*PLAN.warm_ups, *PLAN.steps)]
    assert remaining_steps(tmp_path, PLAN) == []


@pytest.mark.parametrize("ctrl_c", [press_ctrl_c, take_ctrl_c_as_a_run_does])
def test_after_ctrl_c_finished_runs_are_kept_and_the_others_made_later(
    ctrl_c: Callable[[], dict[str, Any]], tmp_path: Path
) -> None:
    before = signal.getsignal(signal.SIGINT)
    first = Scripted(at=5, instead=ctrl_c)
    second = Scripted()
    assert not run_steps(tmp_path, first)
    assert len(first.names) == 5
    assert signal.getsignal(signal.SIGINT) is before
    assert run_steps(tmp_path, second)
    planned = [step.name for step in PLAN.steps]
    assert second.names == [*(step.name for step in PLAN.warm_ups), *planned[2:]]


def test_a_run_that_cannot_start_is_recorded_and_made_later(tmp_path: Path) -> None:
    """All other runs are made."""
    measure = Scripted(at=4, instead=refuse)
    assert run_steps(tmp_path, measure)
    assert len(measure.names) == 8
    records = [orjson.loads(path.read_bytes()) for path in tmp_path.glob(f"{measure.names[3]}-*/run.json")]
    assert [(record["status"], record["reasons"]) for record in records] == [("partial", ["nobody listens"])]
    assert [step.name for step in remaining_steps(tmp_path, PLAN)][-1:] == [measure.names[3]]


def test_an_invalid_run_is_kept_beside_its_replacement(tmp_path: Path) -> None:
    measure = Scripted(at=4, instead=lambda: {"status": "invalid"})
    assert run_steps(tmp_path, measure)
    assert run_steps(tmp_path, Scripted())
    assert len(list(tmp_path.glob(f"{measure.names[3]}-*"))) == 2
    assert remaining_steps(tmp_path, PLAN) == []


def test_a_saturated_run_is_done(tmp_path: Path) -> None:
    assert run_steps(tmp_path, Scripted(at=4, instead=lambda: {"status": "saturated"}))
    assert remaining_steps(tmp_path, PLAN) == []


def test_a_run_that_was_killed_before_its_record_is_repeated(tmp_path: Path) -> None:
    measure = Scripted()
    assert run_steps(tmp_path, measure)
    next(tmp_path.glob(f"{measure.names[5]}-*/run.json")).unlink()
    assert [step.name for step in remaining_steps(tmp_path, PLAN)][-1:] == [measure.names[5]]


def test_a_warm_up_that_cannot_start_ends_the_trial(tmp_path: Path) -> None:
    measure = Scripted(at=2, instead=refuse)
    with pytest.raises(UserError, match="nobody listens"):
        run_steps(tmp_path, measure)
    assert len(measure.names) == 2


@pytest.mark.parametrize("is_terminal", [True, False])
def test_a_label_is_shown_as_it_is_written(is_terminal: bool) -> None:
    """[old] and [/x] look like markup of rich."""
    out = io.StringIO()
    step = replace(PLAN.steps[0], arm=replace(PLAN.arms[0], contender="tape [old]/[/x]"))
    with Progress([step], Console(file=out, force_terminal=is_terminal, width=100)).shown(step) as show_end:
        show_end({"status": "complete"}, False)
    assert "tape [old]/[/x]" in out.getvalue()


def test_a_trial_s_folder_is_looked_through_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put_all(tmp_path, PLAN, {"a": [1.0] * 3, "b": [1.0] * 3})
    looks: list[Path] = []
    iterdir = Path.iterdir
    monkeypatch.setattr(Path, "iterdir", lambda folder: looks.append(folder) or iterdir(folder))
    assert remaining_steps(tmp_path, PLAN) == []
    assert [len(arm.runs) for arm in observe(tmp_path, PLAN).values()] == [3, 3]
    assert looks == [tmp_path] * 2
