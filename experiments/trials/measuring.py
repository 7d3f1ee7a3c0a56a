"""One run of a trial, made as `exchange run --no-spark` makes it, with its record and its page."""

from __future__ import annotations

from pathlib import Path

from exchange.settings import RunSettings
from experiments.brokers_held import Brokers
from experiments.page.writer import write_page
from experiments.run import measure
from experiments.trials.attempts import Record


def measured(folder: Path, settings: RunSettings, brokers: Brokers) -> Record:
    """run.json's content. UserError where it cannot start."""
    record = measure(folder, settings, brokers)
    write_page(folder)
    return record
