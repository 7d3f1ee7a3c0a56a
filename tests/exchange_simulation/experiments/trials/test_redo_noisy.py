"""Noisy runs are repeated by a rule that depends on their noise only."""

from __future__ import annotations

from collections.abc import Iterable
from io import StringIO
from itertools import chain, repeat
from pathlib import Path
from typing import Any

import orjson
import pytest
from rich.console import Console
from sample_trials import plan, record_of

from exchange.settings import RunSettings
from exchange_simulation.experiments.pipeline.run_sources import find_runs
from exchange_simulation.experiments.trials.execution import Progress, execute, remaining_steps
from exchange_simulation.experiments.trials.observations import observe
from exchange_simulation.experiments.trials.plan import TrialPlan, read_plan, write_plan
from exchange_simulation.experiments.trials.results import results
from exchange_simulation.experiments.trials.trial import announcement
from exchange_simulation.reports.comparison.page import write_page

PLAN = plan(repeats=2).with_redo(True)
"""2 warm-ups, 4 runs, and at most 2 more."""
QUIET = 0.01
NOISY = 0.2
NOISIEST = 0.5


class Machine:
    """Measures at once, beside these shares of noise; each run takes longer than the one before."""

    def __init__(self, shares: Iterable[float | None]) -> None:
        self.names: list[str] = []
        self._shares = iter(shares)

    def __call__(self, folder: Path, settings: RunSettings) -> dict[str, Any]:
        self.names.append(folder.name.rpartition("-")[0])
        noise = {"window_s": 1.0, "other_cpu_s": None, "share_of_all_cpus": next(self._shares)}
        at = f"2026-11-21T14:42:{len(self.names) + self.started:02}+00:00"
        record = record_of(folder, settings, us=float(len(self.names)), noise=noise, started_at=at)
        (folder / "run.json").write_bytes(orjson.dumps(record))
        return record

    started = 0


def run_steps(trial: Path, machine: Machine, trial_plan: TrialPlan = PLAN) -> list[str]:
    """The names of the steps in the order of their runs, without warm-ups."""
    steps = remaining_steps(trial, trial_plan)
    assert execute(trial, trial_plan, steps, machine, Progress(steps))
    return [name for name in machine.names if not name.startswith("00-")]


def after_warm_ups(*shares: float | None) -> Iterable[float | None]:
    """The machine is noisy beside warm-ups, which nobody counts."""
    return chain([NOISIEST, NOISIEST], shares, repeat(QUIET))


def counted_runs(trial: Path, trial_plan: TrialPlan = PLAN) -> list[dict[str, Any]]:
    return [run for arm in observe(trial, trial_plan).values() for run in arm.runs.values()]


def test_a_noisy_run_is_repeated_at_the_end_of_its_repeat(tmp_path: Path) -> None:
    names = run_steps(tmp_path, Machine(after_warm_ups(NOISY)))
    planned = [step.name for step in PLAN.steps]
    assert names == [*planned[:2], planned[0], *planned[2:]]
    p50s = sorted(run["completion_us"]["due"]["p50"] for run in counted_runs(tmp_path))
    assert p50s == [4.0, 5.0, 6.0, 7.0], "the first run, of 3 us, does not count"
    [arm] = [arm for arm in results(tmp_path, PLAN)["arms"] if arm["set_aside"]]
    [aside] = arm["set_aside"]
    assert (tmp_path / aside["run"] / "run.json").exists()
    assert aside["repeat"] == 1
    assert aside["share_of_all_cpus"] == NOISY
    assert arm["excluded"] == []
    assert remaining_steps(tmp_path, PLAN) == []


def test_spark_counts_the_runs_that_the_trial_counts(tmp_path: Path) -> None:
    run_steps(tmp_path, Machine(after_warm_ups(NOISY)))
    write_plan(tmp_path, PLAN)
    for run in tmp_path.glob("*/run.json"):
        (run.parent / "spool").mkdir()
    [aside] = [run["run"] for arm in results(tmp_path, PLAN)["arms"] for run in arm["set_aside"]]
    sources = {source.facts.run: source for source in find_runs(tmp_path).sources}
    assert {name for name, source in sources.items() if source.facts.status == "complete"} == sources.keys() - {aside}
    assert len(sources) == 5
    assert sources[aside].facts.status == "set aside"
    (tmp_path / "plan.json").unlink()
    [counted] = [source for source in find_runs(tmp_path).sources if source.facts.run == aside]
    assert counted.facts.status == "complete"
    assert counted.fingerprint != sources[aside].fingerprint, "an ingest reads it anew"
    (tmp_path / "comparison.json").write_bytes(orjson.dumps(results(tmp_path, PLAN)))
    (tmp_path / "plan.json").write_text("{}")
    [known] = [source for source in find_runs(tmp_path).sources if source.facts.run == aside]
    assert known.facts.status == "set aside", "also where the plan is another version's"


def test_the_page_counts_and_links_runs_set_aside(tmp_path: Path) -> None:
    run_steps(tmp_path, Machine(after_warm_ups(NOISY)))
    record = results(tmp_path, PLAN)
    page = write_page(tmp_path, record).read_text()
    [aside] = [run["run"] for arm in record["arms"] for run in arm["set_aside"]]
    assert "1 run set aside for noise" in page
    assert f'<td><a href="{aside}/">1</a> </td>' in page


def test_the_rule_never_looks_at_a_result(tmp_path: Path) -> None:
    """The same noise chooses the same runs, whatever they measured."""
    run_steps(tmp_path, Machine(after_warm_ups(NOISY, QUIET, NOISIEST)))
    chosen = [run["name"] for run in counted_runs(tmp_path)]
    for path in tmp_path.glob("*/run.json"):
        record = orjson.loads(path.read_bytes())
        record["completion_us"]["due"]["p50"] = 1e9 / record["completion_us"]["due"]["p50"]
        path.write_bytes(orjson.dumps(record))
    assert [run["name"] for run in counted_runs(tmp_path)] == chosen


def test_on_a_noisy_machine_redos_end_at_the_cap_of_the_plan(tmp_path: Path) -> None:
    machine = Machine(repeat(NOISY))
    names = run_steps(tmp_path, machine)
    assert len(names) == 4 + 2
    record = results(tmp_path, PLAN)
    assert record["status"] == "complete"
    assert record["redo_noisy"]["set_aside"] == 2
    assert record["redo_noisy"]["still_noisy"] == 4
    output = " ".join(record["caveats"])
    assert "2 runs set aside for noise: other work or steal took more than 5% of the processors beside each" in output
    assert "beside 4 of 4 runs, at most 20%; the plan's 2 extra runs were not enough" in output
    assert remaining_steps(tmp_path, PLAN) == []


def test_a_run_has_three_tries_and_the_quietest_counts(tmp_path: Path) -> None:
    trial_plan = plan(repeats=5).with_redo(True)
    names = run_steps(tmp_path, Machine(after_warm_ups(NOISIEST, QUIET, NOISY, NOISIEST)), trial_plan)
    first = trial_plan.steps[0]
    assert names.count(first.name) == 3
    observed = observe(tmp_path, trial_plan)[first.arm.label]
    assert observed.runs[1]["noise"]["share_of_all_cpus"] == NOISY
    assert [record["noise"]["share_of_all_cpus"] for _, record in observed.set_aside] == [NOISIEST, NOISIEST]
    assert "each was tried up to 3 times, and the machine was not quiet" in " ".join(
        results(tmp_path, trial_plan)["caveats"]
    )


def test_a_resumed_trial_keeps_its_rule_and_its_count(tmp_path: Path) -> None:
    write_plan(tmp_path, PLAN)
    machine = Machine(after_warm_ups(NOISY, NOISY, NOISY))
    steps = remaining_steps(tmp_path, PLAN)
    execute(tmp_path, PLAN, steps[:4], machine, Progress(steps))
    again = read_plan(tmp_path)
    assert again == PLAN
    assert len(list(tmp_path.glob("01-*"))) == 4, "both runs of the first repeat, and both again"
    later = Machine(repeat(NOISY))
    later.started = len(machine.names)
    assert run_steps(tmp_path, later, again) == [step.name for step in PLAN.steps[2:]]
    assert results(tmp_path, again)["redo_noisy"]["set_aside"] == 2


def test_a_noisy_run_is_repeated_after_an_interruption(tmp_path: Path) -> None:
    """Ctrl-C after the second run of the first repeat, of which the first was noisy."""
    steps = remaining_steps(tmp_path, PLAN)
    machine = Machine(after_warm_ups(NOISY))

    def measure(folder: Path, settings: RunSettings) -> dict[str, Any]:
        if len(machine.names) == 4:
            folder.rmdir()
            raise KeyboardInterrupt
        return machine(folder, settings)

    assert not execute(tmp_path, PLAN, steps, measure, Progress(steps))
    first, _, *later = PLAN.steps
    assert [step for step in remaining_steps(tmp_path, PLAN) if step.repeat] == [first, *later]


@pytest.mark.parametrize(
    "trial_plan", [plan(repeats=2), plan(repeats=2).with_redo(False)], ids=["older", "--keep-noisy"]
)
def test_a_plan_without_the_rule_keeps_every_run(trial_plan: TrialPlan, tmp_path: Path) -> None:
    assert len(run_steps(tmp_path, Machine(repeat(NOISY)), trial_plan)) == 4
    record = results(tmp_path, trial_plan)
    assert record["redo_noisy"] is None
    assert "beside 4 of 4 runs, at most 20%" in " ".join(record["caveats"])


def test_a_run_of_unknown_noise_is_not_repeated_but_has_a_caveat(tmp_path: Path) -> None:
    assert len(run_steps(tmp_path, Machine(after_warm_ups(None)))) == 4
    assert "the noise of the machine is unknown for 1 of 4 runs" in results(tmp_path, PLAN)["caveats"]


def test_a_failed_run_is_not_tried_again_for_noise(tmp_path: Path) -> None:
    machine = Machine(after_warm_ups(NOISY))
    write = machine.__call__
    calls = 0

    def measure(folder: Path, settings: RunSettings) -> dict[str, Any]:
        nonlocal calls
        calls += 1
        record = write(folder, settings)
        if calls == 5:
            record["status"] = "partial"
            (folder / "run.json").write_bytes(orjson.dumps(record))
        return record

    steps = remaining_steps(tmp_path, PLAN)
    assert execute(tmp_path, PLAN, steps, measure, Progress(steps))
    assert calls == 7, "warm-ups, the plan, and one try that failed"
    assert len(observe(tmp_path, PLAN)[PLAN.steps[0].arm.label].runs) == 2, "the noisy run counts for want of another"


def test_the_announcement_has_the_rule_and_progress_names_runs_set_aside(tmp_path: Path) -> None:
    output = " ".join(" ".join(announcement(PLAN, PLAN.steps)).split())
    assert "made again: 3 tries at most, 2 extra runs in all (--keep-noisy: never)" in output
    console = Console(width=120, file=StringIO(), force_terminal=False)
    steps = remaining_steps(tmp_path, PLAN)
    (tmp_path / "trial").mkdir()
    execute(tmp_path / "trial", PLAN, steps, Machine(after_warm_ups(NOISY)), Progress(steps, console))
    assert isinstance(console.file, StringIO)
    text = console.file.getvalue()
    assert "complete, set aside: others took 20% of all processors" in text
    assert f"run 5 of 7: {PLAN.steps[0].arm.label}, again: complete" in text


def test_a_plan_whose_rule_is_damaged_is_refused(tmp_path: Path) -> None:
    write_plan(tmp_path, PLAN)
    written = orjson.loads((tmp_path / "plan.json").read_bytes())
    (tmp_path / "plan.json").write_bytes(orjson.dumps({**written, "redo_noisy": {"most_tries": 3}}))
    with pytest.raises(Exception, match=r"plan\.json is damaged"):
        read_plan(tmp_path)


def test_warm_ups_of_resumptions_do_not_count_as_extra_runs(tmp_path: Path) -> None:
    write_plan(tmp_path, PLAN)
    for done in range(1, 4):  # three interruptions, each after new warm-ups and one more run
        machine = Machine(repeat(QUIET))
        machine.started = 10 * done
        steps = remaining_steps(tmp_path, PLAN)
        execute(tmp_path, PLAN, steps[:3], machine, Progress(steps))
    last = Machine(chain([QUIET, NOISY], repeat(QUIET)))
    last.started = 40
    assert run_steps(tmp_path, last)[-1] == PLAN.steps[3].name
    assert results(tmp_path, PLAN)["redo_noisy"]["set_aside"] == 1


def test_extra_runs_are_half_of_all_looks(tmp_path: Path) -> None:
    redo = plan(repeats=10).with_redo(True).with_looks(40).redo
    assert redo is not None
    assert redo.most_extra_runs == 40
