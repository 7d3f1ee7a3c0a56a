"""The conditions of a trial's runs, and the caveats that are shown above its figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import orjson

from exchange.json_records import Record
from exchange.settings import DECIDE_ANSWERS
from exchange.unique import unique
from exchange.words import counted
from exchange_simulation.experiments.trials.observations import Observations
from exchange_simulation.experiments.trials.plan import TrialPlan, TrialStep
from exchange_simulation.launching.files import json_bytes
from exchange_simulation.launching.record.noise import noise_share
from exchange_simulation.repeats.noise_rule import noise_caveats, set_aside_words

DIFFERS_BY_RUN = {("settings", "url"), ("host", "load_before")}
"""Fields of run.json that differ between any two runs: the free port, and the load, which has its own range."""


def conditions(plan: TrialPlan, observed: Iterable[Observations]) -> dict[str, Any]:
    """Return the runs' common conditions; `differences` has each field that differed, with the runs of each value.

    A value of `differences` is `planned` if it is that of the plan.
    """
    arms = list(observed)
    runs = [record for arm in arms for record in arm.runs.values()]
    if not runs:
        return {"differences": []}
    started = sorted(str(run.get("started_at")) for run in runs)
    return {
        "started_at": started[0],
        "last_started_at": started[-1],
        "host": _comparable(runs[0], "host"),
        "load_before": _load(runs),
        "versions": _comparable(runs[0], "versions"),
        "differences": [*_between(runs, "host"), *_between(runs, "versions"), *_settings(plan, arms)],
    }


def _load(runs: list[Record]) -> dict[str, float]:
    """Return the least and the greatest load average of the minute before a run; empty if no run has one."""
    loads = [run["host"]["load_before"][0] for run in runs if run.get("host", {}).get("load_before")]
    return {"min": min(loads), "max": max(loads)} if loads else {}


def _comparable(run: Record, part: str) -> dict[str, Any]:
    """Return the fields of a part of run.json that should be equal in all runs."""
    return {name: value for name, value in run.get(part, {}).items() if (part, name) not in DIFFERS_BY_RUN}


def _between(runs: list[Record], part: str) -> Iterator[dict[str, Any]]:
    """Yield the differences between the runs in a part of run.json."""
    names: list[str] = []
    for run in runs:
        names += _comparable(run, part)
    for name in unique(names):
        yield from _difference(f"{part}.{name}", {run["name"]: run.get(part, {}).get(name) for run in runs})


def _settings(plan: TrialPlan, arms: list[Observations]) -> Iterator[dict[str, Any]]:
    """Yield the differences between each run's settings and the planned settings of its arm.

    A seed that differs by repeat as planned is no difference. A setting that a run of an older version lacks is not
    compared.
    """
    for arm in arms:
        planned = orjson.loads(json_bytes(arm.arm.settings.as_dict()))
        planned_seeds = [plan.settings_of(TrialStep(repeat, arm.arm)).seed for repeat in arm.runs]
        settings_by_run = {run["name"]: run.get("settings", {}) for run in arm.runs.values()}
        for name, value in planned.items():
            by_run = {run: settings[name] for run, settings in settings_by_run.items() if name in settings}
            if name == "seed" and list(by_run.values()) == planned_seeds:
                continue
            yield from _difference(f"settings.{name}", by_run, [value])


def _difference(field: str, by_run: Mapping[str, Any], planned: Sequence[Any] = ()) -> Iterator[dict[str, Any]]:
    """Yield the field with the runs of each value; nothing if all values are equal.

    `planned` has the value of the plan if the field is one of the plan's. No run may have it.
    """
    different_values: list[Any] = []
    for value in (*planned, *by_run.values()):
        if value not in different_values:
            different_values.append(value)
    if len(different_values) < 2:
        return
    entries = []
    for value in different_values:
        runs = [run for run, value_of_run in by_run.items() if value_of_run == value]
        entries.append({"value": value, "planned": value in planned, "runs": runs})
    yield {"field": field, "values": entries}


def caveats(
    plan: TrialPlan, observed: dict[str, Observations], conditions: dict[str, Any], resumed: int = 0
) -> Iterator[str]:
    """Yield sentences about runs that are missing, excluded, saturated, contradictory, noisy or not comparable, and
    about emulated networks that were not those that the plan asked for.
    """
    yield from _counted_runs(plan, observed, resumed)
    yield from _excluded(observed)
    yield from _saturated(observed)
    yield from _streams(plan, observed)
    yield from _set_aside(plan, observed)
    yield from _noisy(plan, observed)
    yield from _unlike_networks(observed)
    yield from _differences(conditions)


def _counted_runs(plan: TrialPlan, observed: dict[str, Observations], resumed: int) -> Iterator[str]:
    """Yield the numbers of runs that count, that failed and that were repeated, and of resumptions."""
    planned = plan.repeats * len(plan.arms)
    valid = 0
    failed = 0
    repeated = 0
    for arm in observed.values():
        valid += len(arm.runs)
        failed += len(arm.excluded)
        repeated += len([run for run in arm.excluded if run.repeat in arm.runs])
    parts: list[str] = []
    if failed:
        parts.append(f"{counted(failed, 'runs')} dropped out, {repeated} made again")
    if resumed:
        how_often = "once" if resumed == 1 else f"{resumed} times"
        parts.append(f"the trial was resumed {how_often}")
    if valid < planned or parts:
        yield "; ".join([f"{valid} of {planned} planned runs are there", *parts])


def _excluded(observed: dict[str, Observations]) -> Iterator[str]:
    """Yield, for each arm with runs that do not count, their numbers by status, and the first reason."""
    for arm in observed.values():
        if not arm.excluded:
            continue
        statuses = Counter(run.record["status"] for run in arm.excluded)
        numbers = ", ".join(f"{number} {status}" for status, number in statuses.items())
        reasons: list[str] = []
        for run in arm.excluded:
            reasons += run.record["reasons"]
        first_reason = reasons[0] if reasons else ""
        yield f"{arm.arm.label}: left out {numbers}: {first_reason}"


def _saturated(observed: dict[str, Observations]) -> Iterator[str]:
    """Yield a sentence about the arms that are compared although some of their runs saturated."""
    arms: list[str] = []
    for arm in observed.values():
        if arm.saturated and arm.kept_rate:
            late = f"; in {arm.delayed} only the gateway was late" if arm.delayed else ""
            arms.append(f"{arm.arm.label} ({arm.saturated} of {len(arm.runs)} runs{late})")
    if arms:
        yield f"counted although some runs saturated: {', '.join(arms)}"


def _streams(plan: TrialPlan, observed: dict[str, Observations]) -> Iterator[str]:
    """Yield a sentence for each block in which equal orders had different answers.

    Arms with several gateways are left out: their answers depend on the order in which the engine took the orders. Arms
    that differ in one of DECIDE_ANSWERS are not compared.
    """
    for block in plan.blocks:
        answers_by_input: dict[tuple[Any, ...], set[str]] = {}
        for arm in plan.arms_of(block):
            if arm.settings.gateways > 1:
                continue
            settings = tuple(getattr(arm.settings, name) for name in DECIDE_ANSWERS)
            for run in observed[arm.label].runs.values():
                checksums = run.get("checksums", {})
                engine_input = (checksums.get("orders"), *settings)
                answers_by_input.setdefault(engine_input, set()).add(checksums.get("answers"))
        if any(len(answers) > 1 for answers in answers_by_input.values()):
            yield f"{block}: the same orders had different answers; do not trust these runs"


def _set_aside(plan: TrialPlan, observed: dict[str, Observations]) -> Iterator[str]:
    """Yield a sentence about the runs that the plan's rule on noise set aside."""
    runs = [run.record for arm in observed.values() for run in arm.set_aside]
    if plan.redo and runs:
        yield set_aside_words(runs, plan.redo)


def _noisy(plan: TrialPlan, observed: dict[str, Observations]) -> Iterator[str]:
    """Yield sentences about the runs that count: how many were noisy, and of how many the noise is unknown."""
    runs = [run for arm in observed.values() for run in arm.runs.values()]
    has_noise = any("noise" in run for run in runs)  # runs of an older version have no such field
    if has_noise:
        set_aside = sum(len(arm.set_aside) for arm in observed.values())
        yield from noise_caveats([noise_share(run) for run in runs], set_aside, plan.redo)


def _unlike_networks(observed: dict[str, Observations]) -> Iterator[str]:
    """Yield a sentence for each emulated network that was, in some runs that count, not the one that was asked for."""
    runs = [run for arm in observed.values() for run in arm.runs.values() if "network" in run]
    for profile in unique(run["network"]["profile"] for run in runs):
        on_network = [run for run in runs if run["network"]["profile"] == profile]
        unlike = [run for run in on_network if run["network"]["flags"]]
        if unlike:
            example = unlike[0]
            flags = "; ".join(example["network"]["flags"])
            how_many = f"{len(unlike)} of {counted(len(on_network), 'runs')}"
            yield f"{profile} was not the network that was asked for in {how_many}, as in {example['name']}: {flags}"


def _differences(conditions: dict[str, Any]) -> Iterator[str]:
    """Yield a sentence for each condition that differs between runs."""
    for difference in conditions["differences"]:
        parts = [_value_in_words(entry) for entry in difference["values"]]
        yield f"conditions differ: {difference['field']} is {', '.join(parts)}"


def _value_in_words(entry: Mapping[str, Any]) -> str:
    """Return a value of a condition, whether it is the planned one, and in how many runs it was found.

    For example: 1 as planned in 2 runs; 1 as planned, if no run had it; 7 in 1 run.
    """
    words = str(entry["value"])
    if entry["planned"]:
        words += " as planned"
    if entry["runs"]:
        words += f" in {counted(len(entry['runs']), 'runs')}"
    return words
