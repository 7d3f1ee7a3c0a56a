"""The bar of a trial in a terminal, with the bar of a run below it and sentences above both."""

from __future__ import annotations

import io
import re

import pytest
from rich.console import Console

from exchange_simulation.experiments.trials.execution import Progress
from exchange_simulation.launching.notices import say
from exchange_simulation.reports import progress
from tests.exchange_simulation.experiments.trials.sample_trials import plan

CONTROL = re.compile(r"\x1b\[\??(\d*)(?:;\d+)*([a-zA-Z])|\r|\n")
SENTENCE = "waiting for engine to be ready"


def screen_after(output: str) -> list[str]:
    """Return the lines that a terminal shows: it knows ends of lines, one line up, and erasing a line."""
    lines = [""]
    row = 0
    place = 0
    for control in [*CONTROL.finditer(output), None]:
        text = output[place : control.start() if control else len(output)]
        lines[row] += text
        if control is None:
            break
        place = control.end()
        if control.group() == "\n":
            row += 1
            lines += [""] * (row + 1 - len(lines))
        elif control.group(2) == "A":
            row = max(row - int(control.group(1) or 1), 0)
        elif control.group(2) == "K":
            lines[row] = ""
    return [line for line in lines if line]


@pytest.mark.parametrize("has_bar_of_run", [True, False])
def test_a_sentence_during_a_run_stays_and_no_old_bar_is_left(has_bar_of_run: bool) -> None:
    file = io.StringIO()
    console = Console(file=file, force_terminal=True, no_color=True, width=100)
    steps = plan().steps[:2]
    bars = Progress(steps, console)
    for step in steps:
        with bars.shown(step) as show_end:
            if has_bar_of_run:
                with progress._bar(console, "zeromq", 800, " of 800 orders") as on_count:
                    say(SENTENCE)
                    on_count(400)
                    *_, bar_of_trial, bar_of_run = screen_after(file.getvalue())
                    assert f"run {bars._begun} of 2" in bar_of_trial
                    assert "400 of 800 orders" in bar_of_run
            else:
                say(SENTENCE)
                assert f"run {bars._begun} of 2" in screen_after(file.getvalue())[-1]
            show_end({"status": "complete"}, False)
    assert screen_after(file.getvalue()) == [SENTENCE, SENTENCE]
