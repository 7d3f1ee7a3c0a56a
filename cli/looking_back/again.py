"""What was run once is run once more: a run with its record's settings, a trial with its plan."""

from __future__ import annotations

from pathlib import Path

import click

from cli.looking_back import benches, capacities, runs, simulations, trials
from cli.looking_back.unlike_then import unlike_then
from exchange.allowed import BadSetting
from exchange.json_records import Record
from exchange.settings import RunSettings
from runs.errors import UserError
from runs.record.reading import Unusable
from runs.record.written_settings import UnknownSettings, settings_as_written

LEAST = ("transport", "orders_per_s", "orders", "seed")
"""Without these nobody knows what was run; what came later has the default that was before."""


def run_again(folder: Path, results: str, name: str | None, *, with_spark: bool, as_json: bool) -> int:
    """The new run's exit code. UserError where the record does not say all of what was run."""
    from cli.running import run

    record = runs.read(folder)
    settings = _settings(folder / runs.FILE, record.get("settings") or {})
    _warn(record, settings)
    return run(settings, results, name, with_spark=with_spark, with_page=True, as_json=as_json)


def _settings(path: Path, written: Record) -> RunSettings:
    if missing := [name for name in LEAST if name not in written]:
        raise UserError(f"{path} does not say what was run: its settings lack {', '.join(missing)}")
    try:
        return settings_as_written(written)
    except UnknownSettings as error:
        raise UserError(f"{path} was written by another version of exchange: {error}; use that version") from error
    except (BadSetting, TypeError) as error:
        raise UserError(f"{path} holds settings that nothing can be run with: {error}") from error


def trial_again(folder: Path, results: str, name: str | None, *, with_spark: bool, as_json: bool) -> int:  # noqa: ARG001
    """The new trial's exit code; its runs have no tables of Spark's, as those of any trial."""
    trials.show_of(folder, trials.study_of(trials.read_plan(folder)))
    from experiments.trials.plan import read_plan
    from experiments.trials.trial import run_trial

    plan = read_plan(folder)
    try:
        _warn(trials.read(folder)["conditions"])
    except Unusable:
        click.echo(f"{folder} never came to say on what host and with what versions it was run", err=True)
    return run_trial(plan, results, name, as_json)


def capacity_again(folder: Path, results: str, name: str | None, *, with_spark: bool, as_json: bool) -> int:  # noqa: ARG001
    """The new search's exit code."""
    from experiments.capacity.answering import capacity, unnamed
    from experiments.capacity.finding import Search
    from experiments.capacity.objective import objective_of

    record = capacities.read(folder)
    settings = _settings(folder / capacities.FILE, record["settings"])
    _warn(record, settings)
    place = Path(results) / (name or unnamed())
    return capacity(settings, objective_of(record["objective"]), Search(**record["search"]), place, as_json)


def simulation_again(folder: Path, results: str, name: str | None, *, with_spark: bool, as_json: bool) -> int:
    """The new simulation's exit code; without Spark it is done in this process, which changes nothing of the result."""
    from experiments.simulate.simulating import simulate
    from experiments.simulate.simulation import Simulation

    record = simulations.read(folder)
    written = record["settings"]
    try:
        simulation = Simulation(**{**written, "prices": tuple(written["prices"])})
    except (BadSetting, KeyError, TypeError) as error:
        raise UserError(f"{folder / simulations.FILE} holds settings that cannot be simulated: {error}") from error
    _warn(record)
    return simulate(
        simulation, record["master"] if with_spark else "none", record["partitions"], results, name,
        with_trades=bool(record.get("trades")), as_json=as_json,
    )  # fmt: skip


def bench_again(folder: Path, results: str, name: str | None, *, with_spark: bool, as_json: bool) -> int:  # noqa: ARG001
    """The new benchmark's exit code."""
    from messaging.running import bench_as_written

    record = benches.read(folder)
    _warn(record)
    return bench_as_written(record, results, name, as_json)


def _warn(then: Record, settings: RunSettings | None = None) -> None:
    """One line, where something will be unlike it was."""
    if told := list(unlike_then(then, settings)):
        click.echo(f"unlike then: {'; '.join(told)}", err=True)
