"""What a reader must know before the figures, in sentences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from experiments.trials.observations import Observations
from experiments.trials.plan import Plan
from experiments.trials.significance import ALPHA, repeats_needed, smallest_p
from experiments.trials.verdicts import most_rows

MOST_NOISE = 0.1
"""Of the processors' time: more is told."""


def unreachable(plan: Plan) -> str | None:
    """Why no repeat of this plan could ever lead to a verdict; None where one may."""
    rows = most_rows(plan)
    needed = repeats_needed(rows) if rows else 0
    if plan.repeats >= needed:
        return None
    return (
        f"{count(plan.repeats, 'repeat')} can reach no verdict: over {count(rows, 'row')} a verdict needs "
        f"p < {ALPHA / rows:.2g}, and the smallest p of {count(plan.repeats, 'repeat')} is "
        f"{smallest_p(plan.repeats):.2g}; {needed} repeats are needed"
    )


def caveats(plan: Plan, observed: dict[str, Observations], conditions: dict[str, Any]) -> list[str]:
    found = [unreachable(plan), *_missing(plan, observed), *_excluded(observed), *_saturated(observed)]
    found += [*_streams(plan, observed), *_noisy(observed), *_differences(conditions)]
    return [sentence for sentence in found if sentence]


def _missing(plan: Plan, observed: dict[str, Observations]) -> Iterator[str]:
    planned = plan.repeats * len(plan.arms)
    made = sum(len(arm.runs) for arm in observed.values())
    if made < planned:
        yield f"{made} of {planned} planned runs are there"


def _excluded(observed: dict[str, Observations]) -> Iterator[str]:
    """How many runs of an arm do not count, and why the first did not."""
    for arm in observed.values():
        if arm.excluded:
            kinds = Counter(record["status"] for _, record in arm.excluded)
            why = next((reason for _, record in arm.excluded for reason in record["reasons"]), "")
            yield f"{arm.arm.label}: left out {', '.join(f'{n} {kind}' for kind, n in kinds.items())}: {why}"


def _saturated(observed: dict[str, Observations]) -> Iterator[str]:
    """Arms that are compared although not all of their runs kept up."""
    some = [arm for arm in observed.values() if arm.saturated and arm.is_held]
    if some:
        told = [f"{arm.arm.label} (in {arm.saturated} of {len(arm.runs)})" for arm in some]
        yield f"compared although some runs saturated: {', '.join(told)}"


def _streams(plan: Plan, observed: dict[str, Observations]) -> Iterator[str]:
    """Within a block every run has the same orders, so it must have had the same answers."""
    for block in plan.blocks:
        runs = [run for arm in plan.arms_of(block) for run in observed[arm.label].runs.values()]
        same_orders: dict[str, set[str]] = {}
        for run in runs:
            sums = run.get("checksums", {})
            same_orders.setdefault(sums.get("orders"), set()).add(sums.get("answers"))
        if any(len(answers) > 1 for answers in same_orders.values()):
            yield f"{block}: the same orders had different answers; do not trust these runs"


def _noisy(observed: dict[str, Observations]) -> Iterator[str]:
    """Runs beside which the machine, or its host, did much else."""
    shares = [
        share for arm in observed.values() for run in arm.runs.values() if (share := noise_share(run)) is not None
    ]
    noisy = [share for share in shares if share > MOST_NOISE]
    if noisy:
        yield (
            f"other work or steal took over {MOST_NOISE:.0%} of the processors beside {len(noisy)} of "
            f"{count(len(shares), 'run')}, at most {max(noisy):.0%}"
        )


def noise_share(run: dict[str, Any]) -> float | None:
    """Of the machine's processor time while a run's clock ran; None where it was not measured."""
    noise, cores = run.get("noise"), run.get("host", {}).get("cores")
    if not noise or not cores or not noise["window_s"]:
        return None
    return float((noise["other_cpu_s"] + noise.get("steal_s", 0.0)) / (noise["window_s"] * cores))


def _differences(conditions: dict[str, Any]) -> Iterator[str]:
    for difference in conditions["differences"]:
        told = [f"{part['value']} in {count(len(part['runs']), 'run')}" for part in difference["values"]]
        yield f"conditions differ: {difference['field']} is {', '.join(told)}"


def count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"
