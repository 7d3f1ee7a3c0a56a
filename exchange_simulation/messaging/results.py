"""A benchmark's folder, in which its record grows, and reading the record back."""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import click

from exchange.json_records import Record
from exchange.record_kinds import BenchRecord
from exchange_simulation.launching.files import new_run_folder, write_json
from exchange_simulation.launching.folder_lock import locked
from exchange_simulation.launching.record.reading import read_record

FILE = "bench.json"
WRITING_SHARE = 0.02
"""The largest share of time that is spent on writing the growing record."""
LONGEST_INTERVAL_S = 10.0
"""The longest interval between two writes: a kill loses at most the measurements of this time."""


class ResultsFolder:
    """The folder `results`/`name`, made with the first record: a benchmark that ends before leaves none."""

    def __init__(self, results: Path, name: str, *, goes_on: bool = False) -> None:
        """UserError if no such folder can be made. With `goes_on` it is there, with an interrupted benchmark."""
        self.folder = results / name
        self._goes_on = goes_on
        if not goes_on:
            new_run_folder(results, name).rmdir()
        self._results = results
        self._next_write_s = 0.0

    def __enter__(self) -> ResultsFolder:
        """Lock the folder in the context, from its first record on. UserError if another process has locked it."""
        self._lock = contextlib.ExitStack()
        if self._goes_on:
            self._lock.enter_context(locked(self.folder))
        return self

    def __exit__(self, *_: object) -> None:
        self._lock.close()

    def write_now_and_then(self, record: Callable[[], Record]) -> None:
        """Write the record so far, unless the last write was a short time ago."""
        began_s = time.monotonic()
        if began_s >= self._next_write_s:
            self.write(record())
            took_s = time.monotonic() - began_s
            self._next_write_s = time.monotonic() + min(took_s / WRITING_SHARE, LONGEST_INTERVAL_S)

    def write(self, record: Record) -> None:
        """Write the record; makes the folder before the first record. ClickException if there is no room."""
        is_new = not self.folder.exists()
        if is_new:
            self._lock.enter_context(locked(new_run_folder(self._results, self.folder.name)))
        try:
            write_json(self.folder / FILE, record)
        except click.ClickException:
            if is_new:
                shutil.rmtree(self.folder, ignore_errors=True)
            raise


def read(folder: Path) -> Record:
    """Read a folder's bench.json back."""
    return read_record(folder / FILE, BenchRecord)
