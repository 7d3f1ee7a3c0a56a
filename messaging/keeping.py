"""What a benchmark leaves: a folder from its first measurement on, whose record grows; a page at its end."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path

import click
import orjson

from messaging.measuring import COMPLETE, Record
from runs.files import new_run_folder, write_json

FILE = "bench.json"
SHARE, MOST_S = 0.02, 10.0
"""How much of the time goes into writing what there is so far, and how much of it is lost where somebody is killed."""


class Keeping:
    """`results`/`name`: of what ends before anything was measured nothing stays, nor of a kill between two writes."""

    def __init__(self, results: Path, name: str) -> None:
        """UserError where no such folder can be made; it is made once there is something to keep."""
        self.folder = new_run_folder(results, name)
        self.folder.rmdir()
        self._results, self._again_s = results, 0.0

    def so_far(self, record: Callable[[], Record]) -> None:
        """Write what there is, unless that was done just now."""
        began_s = time.monotonic()
        if began_s >= self._again_s:
            self._write(record())
            self._again_s = time.monotonic() + min((time.monotonic() - began_s) / SHARE, MOST_S)

    def whole(self, record: Record, as_json: bool) -> int:
        """Record and page; what is said of it; the exit code."""
        from messaging.page import write_page

        self._write(record)
        page = write_page(self.folder, record)
        if as_json:
            click.echo(orjson.dumps(record, option=orjson.OPT_INDENT_2))
        else:
            _show(record, page)
        return 0 if record["status"] == COMPLETE else 1

    def _write(self, record: Record) -> None:
        is_new = not self.folder.exists()
        if is_new:
            new_run_folder(self._results, self.folder.name)
        try:
            write_json(self.folder / FILE, record)
        except click.ClickException:
            if is_new:
                shutil.rmtree(self.folder, ignore_errors=True)
            raise


def _show(record: Record, page: Path) -> None:
    from messaging.table import show

    show(record)
    click.echo(f"page: {page}")
