"""What is said of a plan before its first run."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from experiments.trials.caveats import count, unreachable
from experiments.trials.plan import WARM_UP, Plan, Step, expected_s
from reports.comparison.table import COLUMNS


def announcement(plan: Plan, steps: Sequence[Step]) -> Iterator[str]:
    """How much there is to run, how long that takes, and whether it can lead to anything."""
    expected = expected_s(plan, steps)
    warm_ups = sum(step.repeat == WARM_UP for step in steps)
    left = f", {len(steps) - warm_ups} of them left" if len(steps) - warm_ups < len(plan.steps) else ""
    yield _folded(
        f"{_contenders(plan)}; {count(len(plan.blocks), plan.study.block)}, {count(plan.repeats, 'repeat')}: "
        f"{count(len(plan.steps), 'run')}{left} and {count(warm_ups, 'warm-up')}, about {duration(expected)}"
    )
    if told := unreachable(plan):
        yield _folded(f"warning: {told}")


def _folded(sentence: str) -> str:
    return "\n".join(textwrap.wrap(sentence, COLUMNS))


def _contenders(plan: Plan) -> str:
    """By name; those of several words apiece are only counted, since the plan lists them."""
    names = plan.contenders
    return ", ".join(names) if not any(", " in name for name in names) else count(len(names), "contender")


def listing(steps: Sequence[Step]) -> Iterator[str]:
    """Every run in its order."""
    for step in steps:
        yield f"{'warm-up' if step.repeat == WARM_UP else f'repeat {step.repeat}':<10} {step.arm.label}"


def duration(seconds: float) -> str:
    """In the unit in which one would say it."""
    for unit, unit_s, decimals in (("days", 86_400.0, 0), ("hours", 3_600.0, 1), ("min", 60.0, 0)):
        if seconds >= 1.5 * unit_s:
            return f"{seconds / unit_s:.{decimals}f} {unit}"
    return f"{seconds:.0f} s"
