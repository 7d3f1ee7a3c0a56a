"""What differs between two trials: their plans and conditions, then the medians of arms that both have."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cli.looking_back.difference_table import columns, said, setting, sides
from cli.looking_back.fields import differing, part_of
from exchange.json_records import Record
from reports.rounding import with_interval

SIDES = ("first", "second")
PLAN = ("study", "seed", "repeats")
NO_VERDICT = (
    "Trials were made at different times, so what differs may be the machine's: only arms of one trial are held "
    "against each other. Use exchange compare."
)


def differ(first: Record, second: Record) -> Record:
    """`arms` are those that both have; an estimate is absent where it was not measured."""
    ours, theirs = ({arm["label"]: arm for arm in record["arms"]} for record in (first, second))
    both = [(ours[label], theirs[label]) for label in ours if label in theirs]
    judged = [verdict["metric"] for record in (first, second) for verdict in record["verdicts"]]
    return {
        "kind": "trial",
        "first": _head(first),
        "second": _head(second),
        "conditions": [*_conditions(first, second), *_settings(both)],
        "only_in": {"first": [n for n in ours if n not in theirs], "second": [n for n in theirs if n not in ours]},
        "judged": list(dict.fromkeys(judged)),
        "metrics": {**first["metrics"], **second["metrics"]},
        "arms": [_arm(*arms) for arms in both],
        "caveat": NO_VERDICT,
    }


def _head(record: Record) -> Record:
    told = {name: record[name] for name in ("name", "study", "status", "caveats")}
    return {**told, "started_at": record["conditions"].get("started_at")}


def _conditions(first: Record, second: Record) -> Iterator[Record]:
    """Of the plan, then of those under which the runs were made."""
    yield from differing({name: first[name] for name in PLAN}, {name: second[name] for name in PLAN})
    then, later = first["conditions"], second["conditions"]
    for part in ("host", "versions"):
        yield from differing(part_of(then, part), part_of(later, part), prefix=f"{part}.")


def _settings(both: list[tuple[Record, Record]]) -> Iterator[Record]:
    """Of arms with one label; what differs alike in several is told once, with their labels."""
    told: dict[str, Record] = {}
    for first, second in both:
        for found in differing(first["settings"], second["settings"], prefix="settings."):
            told.setdefault(repr(found), {**found, "arms": []})["arms"].append(first["label"])
    yield from told.values()


def _arm(first: Record, second: Record) -> Record:
    return {"label": first["label"], "first": _estimates(first), "second": _estimates(second)}


def _estimates(arm: Record) -> dict[str, Any]:
    figures = {name: {end: found[end] for end in ("median", "low", "high")} for name, found in arm["metrics"].items()}
    return {"runs": len(arm["runs"]), "held": arm["held"], "metrics": figures}


def show(difference: Record) -> None:
    """The metrics that were judged, or all where none was; in 78 columns."""
    sides(difference, _told)
    if difference["conditions"]:
        columns("plan and conditions that differ", _with_arms(difference), _setting)
    else:
        said("plan, host and versions are the same")
    for metric in difference["judged"] or list(difference["metrics"]):
        about = difference["metrics"][metric]
        rows = list(_medians(difference, metric))
        if rows:
            columns(f"{about['title']}, {about['unit']}", rows, lambda _, estimate: with_interval(estimate))
    for line in _arms_told(difference):
        said(line)
    said(difference["caveat"])


def _told(head: Record) -> Iterator[str]:
    yield f"{head['status']}, by exchange {head['study']}, started {head['started_at'] or 'at an unknown time'}"
    yield from head["caveats"]


def _with_arms(difference: Record) -> Iterator[Record]:
    """A setting of some arms, with their labels."""
    for row in difference["conditions"]:
        some = "arms" in row and len(row["arms"]) < len(difference["arms"])
        yield {**row, "field": f"{row['field']} of {', '.join(row['arms'])}"} if some else row


def _setting(field: str, value: Any) -> str:
    return setting(field.partition(" of ")[0], value)


def _medians(difference: Record, metric: str) -> Iterator[Record]:
    """With their intervals."""
    for arm in difference["arms"]:
        found = {side: arm[side]["metrics"][metric] for side in SIDES if metric in arm[side]["metrics"]}
        if found:
            yield {"field": arm["label"], **found}


def _arms_told(difference: Record) -> Iterator[str]:
    """Whose figures are no other's, or of a load that was not carried."""
    if not difference["arms"]:
        yield "no arm is in both"
    for letter, side in (("A", "first"), ("B", "second")):
        if only := difference["only_in"][side]:
            yield f"only in {letter}: {', '.join(only)}"
        if not_held := [arm["label"] for arm in difference["arms"] if not arm[side]["held"]]:
            yield f"in {letter} the rate was not held by: {', '.join(not_held)}"
