"""A bar for the whole trial, above the bar of the run that is under way; a line a run where there is no terminal."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from rich import progress
from rich.console import Console
from rich.control import Control
from rich.segment import ControlType

from experiments.trials.attempts import Record
from experiments.trials.plan import Step, run_s

Say = Callable[[Record], None]
ONE_LINE_UP = Control((ControlType.CURSOR_UP, 1), ControlType.CARRIAGE_RETURN, (ControlType.ERASE_IN_LINE, 2))


class Progress:
    """Drawn between runs only, on stderr: nothing of it takes CPU from what is measured."""

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
    def of(self, step: Step) -> Iterator[Say]:
        """Around a run; it says how the run ended."""
        self._begun += 1
        words = f"run {self._begun} of {self._total}: {step.arm.label}"
        self._bar.update(self._task, description=words)
        if self._console.is_terminal:
            self._console.print(self._bar.get_renderable())
        try:
            yield lambda record: self._ended(words, record)
        finally:
            if self._console.is_terminal:
                self._console.control(ONE_LINE_UP)
            self._bar.update(self._task, advance=run_s(step.arm.settings))

    def _ended(self, words: str, record: Record) -> None:
        if not self._console.is_terminal:
            self._console.print(f"{words}: {record['status']}")
