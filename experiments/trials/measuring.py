"""One run of a trial, made as `exchange run --no-spark` makes it, with its record and its page."""

from __future__ import annotations

from pathlib import Path

from exchange.settings import RunSettings
from experiments.trials.attempts import Record
from reports.live.progress import progress_bar
from reports.run.page import write_page
from runs.broker.brokers_held import Brokers
from runs.run import measure


def measured(folder: Path, settings: RunSettings, brokers: Brokers) -> Record:
    """run.json's content. UserError where it cannot start."""
    record = measure(folder, settings, progress_bar(settings), brokers)
    write_page(folder)
    return record
