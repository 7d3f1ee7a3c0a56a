"""Makes the runs of a plan that are still to be made. What is done stays, whatever happens to the rest."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType

from exchange.settings import RunSettings
from experiments.trials.attempts import Record, attempts, is_valid, new_attempt, unmeasured
from experiments.trials.plan import WARM_UP, Plan, Step
from experiments.trials.progress import Progress
from runs.errors import UserError
from runs.folder import write_json
from runs.interrupts import on_signals

LIKE_CTRL_C = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
Measure = Callable[[Path, RunSettings], Record]
"""Runs once into a folder; run.json's content. UserError where it cannot start."""


def to_do(trial: Path, plan: Plan) -> list[Step]:
    """What is left, in the plan's order; the machine is warmed up anew, for contenders that have runs left."""
    made = attempts(trial)
    left = [step for step in plan.steps if not any(map(is_valid, made.get(step.name, ())))]
    kinds = {(step.arm.contender, step.arm.settings.transport) for step in left}
    warm_ups = (step for step in plan.warm_ups if (step.arm.contender, step.arm.settings.transport) in kinds)
    return [*warm_ups, *left]


def execute(trial: Path, steps: list[Step], measure: Measure, progress: Progress, pause_s: float = 0.0) -> bool:
    """Whether it came to its end; False where a signal ended it. UserError where a warm-up cannot start."""
    with CtrlC() as ctrl_c:
        for step in steps:
            try:
                if step is not steps[0]:
                    time.sleep(pause_s)
                with progress.of(step) as say:
                    say(_attempt(trial, step, measure))
            except KeyboardInterrupt:
                return False
            if ctrl_c.pressed:
                return False
    return True


def _attempt(trial: Path, step: Step, measure: Measure) -> Record:
    """A run that fails costs this run only; a warm-up that cannot even start, before anything was measured, all."""
    folder = new_attempt(trial, step)
    try:
        return measure(folder, step.arm.settings)
    except UserError as error:
        if step.repeat == WARM_UP:
            raise
        folder.mkdir(exist_ok=True)
        record = unmeasured(folder, str(error))
        write_json(folder / "run.json", record)
        return record


class CtrlC:
    """Remembers Ctrl-C, or what is like it: a run takes it as its own early end, but the user means the whole trial."""

    def __init__(self) -> None:
        self.pressed = False

    def __enter__(self) -> CtrlC:
        self._before = on_signals(LIKE_CTRL_C, self._note)
        return self

    def _note(self, _number: int, _frame: FrameType | None) -> None:
        self.pressed = True
        raise KeyboardInterrupt

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
