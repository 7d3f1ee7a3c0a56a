"""The conditions of a trial's runs, and the caveats that a reader must know before the figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import orjson

from exchange.json_records import Record
from exchange.words import counted
from exchange_simulation.experiments.trials.observations import Observations
from exchange_simulation.experiments.trials.plan import TrialPlan, TrialStep
from exchange_simulation.launching.files import json_bytes
from exchange_simulation.launching.record.noise import noise_share
from exchange_simulation.repeats.noise_rule import noise_caveats, set_aside_words

DIFFERS_BY_RUN = {("settings", "url"), ("host", "load_before")}
"""Fields of run.json that differ between any two runs: the free port, and the load, which is reported as a range."""


def conditions(plan: TrialPlan, observed: Iterable[Observations]) -> dict[str, Any]:
    """The runs' common conditions; `differences` lists each field that differed, with the runs of each value."""
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
    """The least and the greatest load average of the minute before a run."""
    loads = [run["host"]["load_before"][0] for run in runs if run.get("host", {}).get("load_before")]
    return {"min": min(loads), "max": max(loads)} if loads else {}


def _comparable(run: Record, part: str) -> dict[str, Any]:
    return {name: value for name, value in run.get(part, {}).items() if (part, name) not in DIFFERS_BY_RUN}


def _between(runs: list[Record], part: str) -> Iterator[dict[str, Any]]:
    names = dict.fromkeys(name for run in runs for name in _comparable(run, part))
    for name in names:
        yield from _difference(f"{part}.{name}", {run["name"]: run.get(part, {}).get(name) for run in runs})


def _settings(plan: TrialPlan, arms: list[Observations]) -> Iterator[dict[str, Any]]:
    """Differences between each run's settings and the planned ones of its arm.

    A repeat's seed is as planned, and a setting that is newer than the run is not compared.
    """
    for arm in arms:
        planned = orjson.loads(json_bytes(arm.arm.settings.as_dict()))
        seeds = {repeat: plan.settings_of(TrialStep(repeat, arm.arm)).seed for repeat in arm.runs}
        written = {run["name"]: run.get("settings", {}) for run in arm.runs.values()}
        for name, value in planned.items():
            by_run = {run: settings[name] for run, settings in written.items() if name in settings}
            if name == "seed" and list(by_run.values()) == list(seeds.values()):
                continue
            yield from _difference(f"settings.{name}", {f"{arm.arm.label}, as planned": value, **by_run})


def _difference(field: str, by_run: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the field with the runs of each value; nothing if all values are equal."""
    values = list(by_run.values())
    if any(value != values[0] for value in values):
        groups = {orjson.dumps(value): value for value in values}
        yield {
            "field": field,
            "values": [{"value": v, "runs": [run for run in by_run if by_run[run] == v]} for v in groups.values()],
        }


def caveats(
    plan: TrialPlan, observed: dict[str, Observations], conditions: dict[str, Any], resumed: int = 0
) -> Iterator[str]:
    """Sentences about the runs: missing, excluded, saturated, contradictory, noisy, or under other conditions."""
    yield from _counted_runs(plan, observed, resumed)
    yield from _excluded(observed)
    yield from _saturated(observed)
    yield from _streams(plan, observed)
    yield from _set_aside(plan, observed)
    yield from _noisy(plan, observed)
    yield from _differences(conditions)


def _counted_runs(plan: TrialPlan, observed: dict[str, Observations], resumed: int) -> Iterator[str]:
    """How many runs are there, dropped out and were made again, and how often the trial was resumed."""
    planned = plan.repeats * len(plan.arms)
    valid = sum(len(arm.runs) for arm in observed.values())
    failed = [(arm, repeat) for arm in observed.values() for repeat, _ in arm.excluded]
    again = sum(repeat in arm.runs for arm, repeat in failed)
    parts: list[str] = []
    if failed:
        parts.append(f"{counted(len(failed), 'runs')} dropped out, {again} made again")
    if resumed:
        how_often = "once" if resumed == 1 else f"{resumed} times"
        parts.append(f"the trial was resumed {how_often}")
    if valid < planned or parts:
        yield "; ".join([f"{valid} of {planned} planned runs are there", *parts])


def _excluded(observed: dict[str, Observations]) -> Iterator[str]:
    """How many runs of an arm do not count, and the first one's reason."""
    for arm in observed.values():
        if arm.excluded:
            kinds = Counter(record["status"] for _, record in arm.excluded)
            why = next((reason for _, record in arm.excluded for reason in record["reasons"]), "")
            yield f"{arm.arm.label}: left out {', '.join(f'{n} {kind}' for kind, n in kinds.items())}: {why}"


def _saturated(observed: dict[str, Observations]) -> Iterator[str]:
    """The compared arms of which some runs did not keep up."""
    arms: list[str] = []
    for arm in observed.values():
        if arm.saturated and arm.kept_rate:
            late = f"; in {arm.delayed} only the gateway was late" if arm.delayed else ""
            arms.append(f"{arm.arm.label} ({arm.saturated} of {len(arm.runs)} runs{late})")
    if arms:
        yield f"counted although some runs saturated: {', '.join(arms)}"


def _streams(plan: TrialPlan, observed: dict[str, Observations]) -> Iterator[str]:
    """Blocks in which equal orders had different answers."""
    for block in plan.blocks:
        runs = [run for arm in plan.arms_of(block) for run in observed[arm.label].runs.values()]
        same_orders: dict[str, set[str]] = {}
        for run in runs:
            sums = run.get("checksums", {})
            same_orders.setdefault(sums.get("orders"), set()).add(sums.get("answers"))
        if any(len(answers) > 1 for answers in same_orders.values()):
            yield f"{block}: the same orders had different answers; do not trust these runs"


def _set_aside(plan: TrialPlan, observed: dict[str, Observations]) -> Iterator[str]:
    """The runs that the plan's rule on noise set aside, with the first ones' names."""
    runs = [record for arm in observed.values() for _, record in arm.set_aside]
    if plan.redo and runs:
        yield set_aside_words(runs, plan.redo)


def _noisy(plan: TrialPlan, observed: dict[str, Observations]) -> Iterator[str]:
    """How many of the runs that count had much other work, or steal, beside them; and how many do not tell."""
    runs = [run for arm in observed.values() for run in arm.runs.values()]
    if any("noise" in run for run in runs):  # an older version's runs have none
        aside = sum(len(arm.set_aside) for arm in observed.values())
        yield from noise_caveats([noise_share(run) for run in runs], aside, plan.redo)


def _differences(conditions: dict[str, Any]) -> Iterator[str]:
    for difference in conditions["differences"]:
        parts = [f"{part['value']} in {counted(len(part['runs']), 'runs')}" for part in difference["values"]]
        yield f"conditions differ: {difference['field']} is {', '.join(parts)}"
