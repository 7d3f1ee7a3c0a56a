"""What is said of a plan before its first run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from experiments.trials.caveats import count, unreachable
from experiments.trials.plan import WARM_UP, Plan, Step, expected_s


def announcement(plan: Plan, steps: Sequence[Step]) -> Iterator[str]:
    """How much there is to run, how long that takes, and whether it can lead to anything."""
    warm_ups = sum(step.repeat == WARM_UP for step in steps)
    left = f", {len(steps) - warm_ups} of them left" if len(steps) - warm_ups < len(plan.steps) else ""
    yield (
        f"{', '.join(plan.contenders)}; {count(len(plan.blocks), plan.study.block)}, {count(plan.repeats, 'repeat')}: "
        f"{count(len(plan.steps), 'run')}{left} and {count(warm_ups, 'warm-up')}, about {duration(steps)}"
    )
    if told := unreachable(plan):
        yield f"warning: {told}"


def listing(steps: Sequence[Step]) -> Iterator[str]:
    """Every run in its order."""
    for step in steps:
        yield f"{'warm-up' if step.repeat == WARM_UP else f'repeat {step.repeat}':<10} {step.arm.label}"


def duration(steps: Sequence[Step]) -> str:
    seconds = sum(expected_s(step.arm.settings) for step in steps)
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 90 * 60 else f"{seconds / 3600:.1f} hours"
