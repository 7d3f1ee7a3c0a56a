"""Trials with --until-decided, and the differences that a plan is likely to find."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path
from typing import Any

import orjson
import pytest
from click.testing import CliRunner
from sample_trials import plan, put_all, record_of

from exchange.settings import RunSettings
from exchange_simulation.cli.main import main
from exchange_simulation.experiments.trials import trial
from exchange_simulation.experiments.trials.plan import read_plan, write_plan
from exchange_simulation.experiments.trials.results import results
from exchange_simulation.experiments.trials.verdicts import alpha_of, detectable, smallest_ratio
from exchange_simulation.launching.errors import UserError
from exchange_simulation.repeats.judging import ALPHA


def finished_trial(tmp_path: Path, factor: float) -> tuple[Path, dict[str, Any]]:
    """A trial of at most 32 repeats, in which b takes `factor` times as long as a, and both scatter by 10 %."""

    def measure(folder: Path, settings: RunSettings) -> dict[str, Any]:
        scatter = 1.0 + 0.1 * ((settings.seed * 7 + settings.packing * 3) % 5 - 2)
        record = record_of(folder, settings, 100.0 * scatter * (factor if settings.packing == 2 else 1.0))
        (folder / "run.json").write_bytes(orjson.dumps(record))
        return record

    folder = tmp_path / "trial"
    folder.mkdir()
    planned = plan(repeats=8).with_looks(32)
    write_plan(folder, planned)
    announce = partial(trial._print, to_stderr=True)
    return folder, trial._make_runs(folder, planned, measure, announce)[1]


def test_decided_rows_end_a_trial_at_its_first_look(tmp_path: Path) -> None:
    folder, record = finished_trial(tmp_path, 3.0)
    assert record["repeats"] == 8
    assert record["undecided"] == 0
    assert read_plan(folder).repeats == 8


def test_a_plan_of_a_trial_that_goes_on_has_the_missing_runs_alone(tmp_path: Path) -> None:
    folder, _ = finished_trial(tmp_path, 3.0)
    for repeat in ("08", "07"):
        shutil.rmtree(next(folder.glob(f"{repeat}-*")))
    planned = CliRunner().invoke(main, ["compare", "--resume", "trial", "--results", str(tmp_path), "--dry-run"])
    assert planned.exit_code == 0, planned.output
    assert "16 runs, 2 of them left" in " ".join(planned.stdout.split())
    assert f"the results are in {folder}" in planned.stdout
    assert [line.split()[1] for line in planned.stdout.splitlines() if line.startswith("repeat ")] == ["7", "8"]
    assert len(list(folder.glob("08-*"))) == 1


def test_a_trial_with_undecided_rows_makes_the_most_repeats(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, record = finished_trial(tmp_path, 1.0)
    assert record["repeats"] == 32
    assert read_plan(folder).repeats == 32
    assert len(list(folder.glob("32-*/run.json"))) == 2
    assert "3 of 3 rows undecided after 8 repeats; going on to 16" in capsys.readouterr().err


def test_a_trial_interrupted_before_its_second_warm_up_was_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its warm-ups are no more than those of a trial that was not interrupted."""
    again: list[str] = []

    def measure(folder: Path, settings: RunSettings, **_: object) -> dict[str, Any]:
        if folder.name.startswith("00-") and list(tmp_path.glob("mine/02-*")) and not again:
            folder.rmdir()
            again.append("interrupted")
            raise KeyboardInterrupt
        record = record_of(folder, settings)
        (folder / "run.json").write_bytes(orjson.dumps(record))
        return record

    monkeypatch.setattr(trial, "measure_with_page", measure)
    planned = plan(repeats=2).with_looks(4)
    assert not trial.new_trial(planned, str(tmp_path), "mine", lambda _: None).is_whole
    trial.resume_trial(tmp_path / "mine", as_json=False)
    record = orjson.loads((tmp_path / "mine" / "comparison.json").read_bytes())
    assert record["repeats"] == 4
    assert record["resumed"] == 1
    assert again == ["interrupted"]
    trial.resume_trial(tmp_path / "mine", as_json=False)
    assert read_plan(tmp_path / "mine").resumed == 1, "there was nothing left to do"


def test_looks_share_the_chance_of_a_false_verdict(tmp_path: Path) -> None:
    many = plan(repeats=10).with_looks(40)
    put_all(tmp_path, many, {"a": [100.0] * 10, "b": [300.0] * 10})
    record = results(tmp_path, many)["statistics"]
    assert record["looks"] == [10, 20, 40]
    assert record["alpha_of_a_look"] == 0.05 / 3
    assert record["repeats_needed"] == 8


@pytest.mark.parametrize(
    ("first", "most", "looks"),
    [(10, 40, 3), (5, 20, 2), (2, 20, 3), (7, 28, 3), (5, 5, 1), (6, 6, 1)],
)
def test_a_look_with_too_few_repeats_gets_no_share_of_alpha(first: int, most: int, looks: int) -> None:
    """7 repeats are enough for one of two looks, so three share where the looks are 7, 14 and 28."""
    assert alpha_of(plan(repeats=first).with_looks(most)) == ALPHA / looks


def test_the_announcement_has_the_most_repeats() -> None:
    going_on = plan(repeats=10).with_looks(40)
    output = " ".join(" ".join(trial.announcement(going_on, going_on.steps)).split())
    assert "10 repeats: 20 runs" in output
    assert "doubles the repeats, up to 40: in all 80 runs" in output
    assert "p50 is found if it is at least 23% with 10 repeats, 9% with 40 repeats (if it varies by 16%" in output


def test_the_announcement_has_the_smallest_likely_difference(tmp_path: Path) -> None:
    assert "p50 is found if it is at least 21% with 10 repeats" in str(detectable(plan(), None))
    assert "there is no earlier trial" in str(detectable(plan(), tmp_path))


def put_earlier_trial(results_folder: Path) -> None:
    folder = results_folder / "earlier"
    quiet = [100.0, 101.0, 99.0, 100.5, 100.0, 99.5]
    folder.mkdir()
    put_all(folder, plan(repeats=6), {"a": quiet, "b": quiet[::-1]})
    (folder / "comparison.json").write_bytes(orjson.dumps(results(folder, plan(repeats=6))))


def test_earlier_trials_tell_how_far_repeats_scatter(tmp_path: Path) -> None:
    put_earlier_trial(tmp_path)
    output = str(detectable(plan(), tmp_path))
    assert "as in 1 row of the trials so far" in output
    assert "at least 2% with" in output
    earlier = tmp_path / "earlier" / "comparison.json"
    earlier.write_bytes(earlier.read_bytes().replace(b'"cannot tell"', b'"not compared"'))
    assert "there is no earlier trial" in str(detectable(plan(), tmp_path)), "a saturated arm scatters more"


def test_a_damaged_record_does_not_hide_the_other_earlier_trials(tmp_path: Path) -> None:
    put_earlier_trial(tmp_path)
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged" / "comparison.json").write_text("{")
    assert "as in 1 row of the trials so far" in str(detectable(plan(), tmp_path))


def test_more_rows_and_fewer_repeats_find_less() -> None:
    assert smallest_ratio(10, 15, 0.145, 0.05) == pytest.approx(1.23, abs=0.01)
    assert (
        smallest_ratio(10, 30, 0.145, 0.05) > smallest_ratio(10, 15, 0.145, 0.05) > smallest_ratio(20, 15, 0.145, 0.05)
    )


def test_a_trial_cannot_be_resumed_while_another_process_makes_its_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:

    def measure(folder: Path, settings: RunSettings, **_: object) -> dict[str, Any]:
        with pytest.raises(UserError, match="another process measures in"):
            trial.resume_trial(tmp_path / "mine", as_json=False)
        record = record_of(folder, settings)
        (folder / "run.json").write_bytes(orjson.dumps(record))
        return record

    monkeypatch.setattr(trial, "measure_with_page", measure)
    assert trial.new_trial(plan(repeats=2), str(tmp_path), "mine", lambda _: None).is_whole
    assert read_plan(tmp_path / "mine").resumed == 0
    trial.resume_trial(tmp_path / "mine", as_json=False)


def test_a_trial_that_fails_in_the_middle_keeps_its_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:

    def measure(folder: Path, settings: RunSettings, **_: object) -> dict[str, Any]:
        record = record_of(folder, settings)
        (folder / "run.json").write_bytes(orjson.dumps(record))
        if folder.name.startswith("02-"):
            monkeypatch.setattr("exchange_simulation.experiments.trials.observations.new_run_folder", refuse)
        return record

    def refuse(*_: object) -> Path:
        raise UserError("no space left")

    monkeypatch.setattr(trial, "measure_with_page", measure)
    with pytest.raises(UserError):
        trial.new_trial(plan(repeats=8), str(tmp_path), "mine", lambda _: None)
    assert list(tmp_path.glob("mine/01-*/run.json"))
