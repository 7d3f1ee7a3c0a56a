"""The difference between two trials: plans and conditions, then the medians of the arms that both trials have."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cli.results.difference import differing, part_of, print_heads, print_lines, print_rows, setting_words
from exchange.json_records import Record
from reports.formats import with_middle_half

SIDES = ("first", "second")
PLAN = ("study", "seed", "repeats")
NO_VERDICT = (
    "Trials were made at different times, so what differs may be the machine's: only arms of one trial are held "
    "against each other. Use exchange compare."
)


def differ(first: Record, second: Record) -> Record:
    """`arms` are those that both trials have; an estimate that was not measured is absent."""
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
    head = {name: record[name] for name in ("name", "study", "status", "caveats")}
    return {**head, "started_at": record["conditions"].get("started_at")}


def _conditions(first: Record, second: Record) -> Iterator[Record]:
    """Yield what differs in the plans, then in the conditions of the runs."""
    yield from differing({name: first[name] for name in PLAN}, {name: second[name] for name in PLAN})
    then, later = first["conditions"], second["conditions"]
    for part in ("host", "versions"):
        yield from differing(part_of(then, part), part_of(later, part), prefix=f"{part}.")


def _settings(both: list[tuple[Record, Record]]) -> Iterator[Record]:
    """Yield the settings in which arms of one label differ; a difference that several arms share is one line."""
    lines: dict[str, Record] = {}
    for first, second in both:
        for found in differing(first["settings"], second["settings"], prefix="settings."):
            lines.setdefault(repr(found), {**found, "arms": []})["arms"].append(first["label"])
    yield from lines.values()


def _arm(first: Record, second: Record) -> Record:
    return {"label": first["label"], "first": _estimates(first), "second": _estimates(second)}


def _estimates(arm: Record) -> dict[str, Any]:
    figures = {
        name: {end: found[end] for end in ("median", "low", "high", "by_repeat")}
        for name, found in arm["metrics"].items()
    }
    return {"runs": len(arm["runs"]), "held": arm["held"], "metrics": figures}


def show(difference: Record) -> None:
    """Print the metrics that have a verdict, or all metrics if none has one."""
    print_heads(difference, _head_lines)
    if difference["conditions"]:
        print_rows("plan and conditions that differ", _with_arms(difference), _setting)
    else:
        print_lines("plan, host and versions are the same")
    for metric in difference["judged"] or list(difference["metrics"]):
        about = difference["metrics"][metric]
        rows = list(_medians(difference, metric))
        if rows:
            print_rows(f"{about['title']}, {about['unit']}", rows, lambda _, estimate: with_middle_half(estimate))
    for line in _arm_lines(difference):
        print_lines(line)
    print_lines(difference["caveat"])


def _head_lines(head: Record) -> Iterator[str]:
    yield f"{head['status']}, by exchange {head['study']}, started {head['started_at'] or 'at an unknown time'}"
    yield from head["caveats"]


def _with_arms(difference: Record) -> Iterator[Record]:
    """Add the arms' labels to a setting in which only some arms differ."""
    for row in difference["conditions"]:
        some = "arms" in row and len(row["arms"]) < len(difference["arms"])
        yield {**row, "field": f"{row['field']} of {', '.join(row['arms'])}"} if some else row


def _setting(field: str, value: Any) -> str:
    return setting_words(field.partition(" of ")[0], value)


def _medians(difference: Record, metric: str) -> Iterator[Record]:
    """Yield each arm's medians with their intervals."""
    for arm in difference["arms"]:
        found = {side: arm[side]["metrics"][metric] for side in SIDES if metric in arm[side]["metrics"]}
        if found:
            yield {"field": arm["label"], **found}


def _arm_lines(difference: Record) -> Iterator[str]:
    """Yield a line about arms that only one trial has, and about arms whose rate was not held."""
    if not difference["arms"]:
        yield "no arm is in both"
    for letter, side in (("A", "first"), ("B", "second")):
        if only := difference["only_in"][side]:
            yield f"only in {letter}: {', '.join(only)}"
        if not_held := [arm["label"] for arm in difference["arms"] if not arm[side]["held"]]:
            yield f"in {letter} the rate was not held by: {', '.join(not_held)}"
