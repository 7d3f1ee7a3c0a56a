"""A benchmark's folder, in which its record grows, and reading the record back."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path

import click

from exchange.json_records import Record
from exchange.record_kinds import BenchRecord
from exchange_simulation.launching.files import new_run_folder, write_json
from exchange_simulation.launching.record.reading import read_record

FILE = "bench.json"
SHARE, MOST_S = 0.02, 10.0
"""The largest share of time spent on writing the growing record, and the longest time that a kill loses."""


class ResultsFolder:
    """`results`/`name`, from the first measurement on: a benchmark that ends before leaves nothing."""

    def __init__(self, results: Path, name: str) -> None:
        """UserError if no such folder can be made. It is made once there is a record to write."""
        self.folder = new_run_folder(results, name)
        self.folder.rmdir()
        self._results = results
        self._again_s = 0.0

    def write_now_and_then(self, record: Callable[[], Record]) -> None:
        """Write the record as it is so far, unless that was done just now."""
        began_s = time.monotonic()
        if began_s >= self._again_s:
            self.write(record())
            self._again_s = time.monotonic() + min((time.monotonic() - began_s) / SHARE, MOST_S)

    def write(self, record: Record) -> None:
        is_new = not self.folder.exists()
        if is_new:
            new_run_folder(self._results, self.folder.name)
        try:
            write_json(self.folder / FILE, record)
        except click.ClickException:
            if is_new:
                shutil.rmtree(self.folder, ignore_errors=True)
            raise


def read(folder: Path) -> Record:
    """Read a folder's bench.json back."""
    return read_record(folder / FILE, BenchRecord)
