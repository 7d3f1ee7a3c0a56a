"""Makes the missing runs of a plan. Finished runs stay, whatever happens to the rest."""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType

from rich import progress
from rich.console import Console
from rich.control import Control
from rich.segment import ControlType

from exchange.json_records import Record
from exchange.settings import RunSettings
from experiments.trials.observations import attempts, is_valid, new_attempt, unmeasured
from experiments.trials.plan import WARM_UP, Plan, Step, run_s
from reports.live.progress import progress_bar
from reports.run.page import write_page
from runs.errors import UserError
from runs.files import write_json
from runs.interrupts import on_signals
from runs.launch.brokers import Brokers
from runs.run import measure

LIKE_CTRL_C = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
ONE_LINE_UP = Control((ControlType.CURSOR_UP, 1), ControlType.CARRIAGE_RETURN, (ControlType.ERASE_IN_LINE, 2))
Measure = Callable[[Path, RunSettings], Record]
"""Makes a run in a folder and returns run.json's content. UserError if the run cannot start."""


def measure_with_page(folder: Path, settings: RunSettings, brokers: Brokers) -> Record:
    """Make one run with its record and its page, as `exchange run --no-spark` does. UserError if it cannot start."""
    record = measure(folder, settings, progress_bar(settings), brokers)
    write_page(folder)
    return record


def to_do(trial: Path, plan: Plan) -> list[Step]:
    """The remaining steps in the plan's order, after new warm-ups for the contenders that have runs left."""
    records = attempts(trial)
    left = [step for step in plan.steps if not any(map(is_valid, records.get(step.name, ())))]
    kinds = {(step.arm.contender, step.arm.settings.transport) for step in left}
    warm_ups = (step for step in plan.warm_ups if (step.arm.contender, step.arm.settings.transport) in kinds)
    return [*warm_ups, *left]


def execute(trial: Path, steps: list[Step], measure: Measure, progress: Progress, pause_s: float = 0.0) -> bool:
    """Make the runs. False if a signal ended them early. UserError if a warm-up cannot start."""
    with CtrlC() as ctrl_c:
        for step in steps:
            try:
                if step is not steps[0]:
                    time.sleep(pause_s)
                with progress.shown(step) as show_end:
                    show_end(_attempt(trial, step, measure))
            except KeyboardInterrupt:
                return False
            if ctrl_c.pressed:
                return False
    return True


def _attempt(trial: Path, step: Step, measure: Measure) -> Record:
    """A run that cannot start is recorded as partial; a warm-up that cannot start ends the trial with UserError."""
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
    """Remembers Ctrl-C or a similar signal, which ends one run early although the user means the whole trial."""

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


class Progress:
    """A bar for the whole trial above the current run's bar, or a line for each run if there is no terminal.

    It is drawn on stderr and only between runs, so it takes no CPU time from what is measured.
    """

    def __init__(self, steps: list[Step], console: Console | None = None) -> None:
        self._console = console or Console(stderr=True, highlight=False)
        self._bar = progress.Progress(
            progress.BarColumn(), progress.TextColumn("{task.description}"), progress.TimeRemainingColumn(),
            auto_refresh=False, speed_estimate_period=3600.0,
        )  # fmt: skip
        self._total = len(steps)
        self._begun = 0
        self._task = self._bar.add_task("", total=sum(run_s(step.arm.settings) for step in steps))

    @contextlib.contextmanager
    def shown(self, step: Step) -> Iterator[Callable[[Record], None]]:
        """Surrounds a run; the yielded function shows how the run ended."""
        self._begun += 1
        words = f"run {self._begun} of {self._total}: {step.arm.label}"
        self._bar.update(self._task, description=words)
        if self._console.is_terminal:
            self._console.print(self._bar.get_renderable())
        try:
            yield lambda record: self._show_end(words, record)
        finally:
            if self._console.is_terminal:
                self._console.control(ONE_LINE_UP)
            self._bar.update(self._task, advance=run_s(step.arm.settings))

    def _show_end(self, words: str, record: Record) -> None:
        if not self._console.is_terminal:
            self._console.print(f"{words}: {record['status']}")
