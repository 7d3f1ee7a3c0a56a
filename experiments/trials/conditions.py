"""Under which conditions the runs of a trial were made, and in what they differ although they should not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import orjson

if TYPE_CHECKING:
    from experiments.trials.attempts import Record
    from experiments.trials.observations import Observations

DIFFERS_BY_RUN = {("settings", "url"), ("host", "load_before")}
"""The port that was free, and the load, which is told as a range."""


def conditions(observed: Iterable[Observations]) -> dict[str, Any]:
    """What the runs had in common; `differences` says by field which runs had what."""
    arms = list(observed)
    runs = [record for arm in arms for record in arm.runs.values()]
    if not runs:
        return {"differences": []}
    started = sorted(str(run.get("started_at")) for run in runs)
    return {
        "started_at": started[0],
        "last_started_at": started[-1],
        "host": _without(runs[0], "host"),
        "load_before": _load(runs),
        "versions": _without(runs[0], "versions"),
        "differences": [*_between(runs, "host"), *_between(runs, "versions"), *_settings(arms)],
    }


def _load(runs: list[Record]) -> dict[str, float]:
    """The machine's load average over a minute before each run, the least and the most."""
    loads = [run["host"]["load_before"][0] for run in runs if run.get("host", {}).get("load_before")]
    return {"min": min(loads), "max": max(loads)} if loads else {}


def _without(run: Record, part: str) -> dict[str, Any]:
    return {name: value for name, value in run.get(part, {}).items() if (part, name) not in DIFFERS_BY_RUN}


def _between(runs: list[Record], part: str) -> Iterator[dict[str, Any]]:
    names = dict.fromkeys(name for run in runs for name in _without(run, part))
    for name in names:
        yield from _difference(f"{part}.{name}", {run["name"]: run.get(part, {}).get(name) for run in runs})


def _settings(arms: list[Observations]) -> Iterator[dict[str, Any]]:
    """A run is held against the settings that its arm was to have."""
    for arm in arms:
        planned = orjson.loads(orjson.dumps(arm.arm.settings.as_dict()))
        for name, value in planned.items():
            found = {run["name"]: run.get("settings", {}).get(name) for run in arm.runs.values()}
            yield from _difference(f"settings.{name}", {f"{arm.arm.label}, as planned": value, **found})


def _difference(field: str, by_run: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Nothing where all are alike."""
    values = list(by_run.values())
    if any(value != values[0] for value in values):
        groups = {orjson.dumps(value): value for value in values}
        yield {
            "field": field,
            "values": [{"value": v, "runs": [run for run in by_run if by_run[run] == v]} for v in groups.values()],
        }
