"""Makes the missing runs of a plan. Finished runs are kept, even if a later one fails."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from rich import progress
from rich.console import Console

from exchange.json_records import Record
from exchange.settings import RunSettings
from exchange_simulation.experiments.trials.checkouts import measure_by_checkout
from exchange_simulation.experiments.trials.observations import attempts, is_valid, new_attempt, unmeasured
from exchange_simulation.experiments.trials.plan import WARM_UP, TrialPlan, TrialStep, run_s
from exchange_simulation.launching.errors import UserError
from exchange_simulation.launching.files import write_json
from exchange_simulation.launching.interrupts import interruption_noted, pause
from exchange_simulation.launching.launch.brokers import Brokers
from exchange_simulation.launching.notices import has_listener, printed_by, say
from exchange_simulation.launching.record.noise import why_set_aside
from exchange_simulation.launching.run import measured_run
from exchange_simulation.repeats.noise_rule import Redos
from exchange_simulation.reports.progress import ONE_LINE_UP, below, print_sentence_above, progress_bar
from exchange_simulation.reports.run.page import write_page
from exchange_simulation.reports.run.run_folder import read_run_folder

Measure = Callable[[Path, RunSettings], Record]
"""Makes a run in a folder and returns run.json's content. UserError if the run cannot start."""


def measure_with_page(folder: Path, settings: RunSettings, brokers: Brokers) -> Record:
    """Make one run with its record and its page, as `exchange run --no-spark` does. UserError if it cannot start."""
    measured = measured_run(folder, settings, progress_bar(settings), brokers)
    write_page(folder, read_run_folder(folder, measured.spool))
    return measured.record


def remaining_steps(trial: Path, plan: TrialPlan) -> list[TrialStep]:
    """Return the remaining steps in the plan's order, after new warm-ups for the contenders of these steps.

    A step remains if it has no valid run, or if its runs are all too noisy and the plan's rule allows another one.
    """
    valid = _valid_attempts(trial)
    redos: Redos[TrialStep] = Redos(plan.redo, valid)
    steps = [step for step in plan.steps if not valid.get(step.name) or redos.wants(step)]
    kinds = {_kind(step) for step in steps}
    warm_ups = [step for step in plan.warm_ups if _kind(step) in kinds]
    return [*warm_ups, *steps]


def _kind(step: TrialStep) -> tuple[str, str]:
    """Return the contender and the transport of a step. Each kind of step needs one warm-up."""
    return step.arm.contender, step.arm.settings.transport


def _valid_attempts(trial: Path) -> dict[str, list[Record]]:
    """Return the valid runs by the name of their step, without warm-ups."""
    valid = {}
    for step, tries in attempts(trial).items():
        is_warm_up = step.startswith(f"{WARM_UP:02}-")
        if not is_warm_up:
            valid[step] = [record for record in tries if is_valid(record)]
    return valid


def execute(trial: Path, plan: TrialPlan, steps: list[TrialStep], measure: Measure, progress: Progress) -> bool:
    """Make the runs, and repeat noisy ones. Returns False if a signal ended them early.

    UserError if a warm-up cannot start.
    """
    redos: Redos[TrialStep] = Redos(plan.redo, _valid_attempts(trial))
    with interruption_noted() as interruption:
        for number, step in enumerate(redos.in_turn(steps)):
            try:
                if number:
                    pause(plan.pause_s)
                with progress.shown(step) as show_end:
                    record = _attempt(trial, step, plan.settings_of(step), measure)
                    redos.note(step, record, is_valid=is_valid(record))
                    show_end(record, redos.wants(step))
            except KeyboardInterrupt:
                return False
            if interruption.came:
                return False
    return True


def _attempt(trial: Path, step: TrialStep, settings: RunSettings, measure: Measure) -> Record:
    """Make one run, and return its record. If a run cannot start, its record is partial; a warm-up raises UserError."""
    folder = new_attempt(trial, step)
    try:
        if step.arm.checkout is not None:
            return measure_by_checkout(folder, settings, step.arm.checkout)
        return measure(folder, settings)
    except UserError as error:
        if step.repeat == WARM_UP:
            raise
        folder.mkdir(exist_ok=True)
        record = unmeasured(folder, str(error))
        write_json(folder / "run.json", record)
        return record


class Progress:
    """A bar for the whole trial above the current run's bar, or a line for each run if there is no terminal.

    The bar is drawn on stderr, and only between runs, so that it takes no CPU time from the measured processes.
    """

    def __init__(self, steps: list[TrialStep], console: Console | None = None) -> None:
        self._console = console or Console(stderr=True, highlight=False)
        self._is_drawn = self._console.is_terminal and not has_listener()
        self._bar = progress.Progress(
            progress.BarColumn(),
            progress.TextColumn("{task.description}", markup=False),
            progress.TimeRemainingColumn(),
            auto_refresh=False,
            speed_estimate_period=3600.0,
        )
        self._total = len(steps)
        self._begun = 0
        self._shown: set[str] = set()
        self._duration_s = sum(run_s(step.arm.settings) for step in steps)
        self._task = self._bar.add_task("", total=self._duration_s)

    @contextlib.contextmanager
    def shown(self, step: TrialStep) -> Iterator[Callable[[Record, bool], None]]:
        """Show the step during its run. Yields a function that shows the end of the run: its record, and whether the
        run will be repeated.
        """
        self._begun += 1
        is_extra = step.name in self._shown
        if is_extra:
            self._total += 1
            self._duration_s += run_s(step.arm.settings)
        self._shown.add(step.name)
        words = f"run {self._begun} of {self._total}: {step.arm.label}"
        if is_extra:
            words += ", again"
        self._bar.update(self._task, description=words, total=self._duration_s)
        try:
            with self._drawn() if self._is_drawn else contextlib.nullcontext():
                yield partial(self._show_end, words)
        finally:
            self._bar.update(self._task, advance=run_s(step.arm.settings))

    @contextlib.contextmanager
    def _drawn(self) -> Iterator[None]:
        """Draw the bar, and erase it at the end. Sentences are printed above it."""
        line = self._bar.get_renderable()

        def print_above(sentence: str) -> None:
            print_sentence_above(self._console, sentence, line)

        self._console.print(line)
        try:
            with below(line), printed_by(print_above):
                yield
        finally:
            self._console.control(ONE_LINE_UP)

    def _show_end(self, words: str, record: Record, will_be_repeated: bool) -> None:
        """Print a line about the end of a run, unless a bar is drawn."""
        if self._is_drawn:
            return
        noise = f", set aside: {why_set_aside(record)}" if will_be_repeated else ""
        sentence = f"{words}: {record['status']}{noise}"
        if has_listener():
            say(sentence)
        else:
            self._console.print(sentence, markup=False)
