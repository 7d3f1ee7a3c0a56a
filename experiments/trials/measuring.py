"""One run of a trial, made as `exchange run --no-spark` makes it, with its record and its page."""

from __future__ import annotations

from pathlib import Path

from exchange.settings import RunSettings
from experiments.errors import UserError
from experiments.page import write_page
from experiments.run import measure
from experiments.trials.attempts import Record
from transports.base import BadAddress
from transports.registry import scheme_of, transport_of


def measured(folder: Path, settings: RunSettings) -> Record:
    """run.json's content. UserError where it cannot start."""
    record = measure(folder, settings, runs_in_one_process(settings))
    write_page(folder)
    return record


def runs_in_one_process(settings: RunSettings) -> bool:
    """UserError where what is to carry the messages is not known."""
    scheme = scheme_of(settings.transport)
    try:
        return scheme in transport_of(scheme).one_process
    except BadAddress as error:
        raise UserError(str(error)) from error
