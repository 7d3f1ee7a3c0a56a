"""What a trial is made to say: which metrics it reads and judges, who is held against whom, and in what words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from exchange.estimates import Estimate
from experiments.trials.wording import differ, hurts_or_helps
from runs.metrics import COMPARED, HELD_BACK, Metric

Differ = Callable[[str, str, str, Estimate, int], str]


@dataclass(frozen=True, kw_only=True)
class Study:
    name: str
    """Of the command that makes it, and goes on with it."""
    metrics: tuple[Metric, ...]
    """In the order in which they are shown."""
    block: str = "rate"
    """What a block is called."""
    rows_as_json: bool = False
    """--json prints a row for each arm, not the whole record."""
    against_the_first: bool = False
    """Contenders are held against the first one only, not each against each."""
    by_metric: bool = False
    """Each metric is a question of its own: verdicts are corrected for its rows, not for all."""
    differ: Differ = differ
    """A verdict in words, of a metric's own, both contenders, their ratio and the number of repeats."""


COMPARE = Study(name="compare", metrics=COMPARED)
NAGLE = Study(
    name="nagle", metrics=HELD_BACK, block="pair", against_the_first=True, by_metric=True,
    differ=hurts_or_helps,
)  # fmt: skip
SWEEP = Study(name="sweep", metrics=COMPARED, block="block", rows_as_json=True)
STUDIES = {study.name: study for study in (COMPARE, NAGLE, SWEEP)}
"""By name."""
