"""Run several `exchange bench` commands in one child process, which imports only once; returns their outcomes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from traceback import format_exception
from typing import Any

from click.testing import CliRunner

from tests.machine import PATIENCE_S

Outcome = dict[str, Any]
"""code, out and err of a command, and its record, which is None if the command left none."""

WITHOUT_PAGES = "EXCHANGE_TESTS_WITHOUT_PAGES"
DIVISOR = 5
"""Divides the default number of messages; a measurement that is too short with them is made again with more."""


def benches(results: Path, *commands: str, pages: bool = False, **env: str) -> list[Outcome]:
    """Run the commands, whose folders are results/0, results/1, ...

    The first page costs 0.6 s and each other 0.1 s, so pages are not written unless `pages` is set.
    """
    if not pages:
        env[WITHOUT_PAGES] = "1"
    child = subprocess.run(
        [sys.executable, "-m", __name__, str(results), *commands],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=True,
        env={**os.environ, **env},
        cwd=Path(__file__).parents[3],
    )
    return json.loads(child.stdout)


def bench(results: Path, command: str, **env: str) -> Outcome:
    (outcome,) = benches(results, command, **env)
    return outcome


def _outcome(results: Path, place: int, command: str) -> Outcome:
    """Run one command in this process; `place` names its folder."""
    from exchange_simulation.cli.main import main

    words = ["bench", *command.split(), "--results", str(results), "--name", str(place)]
    finished = CliRunner().invoke(main, words)
    record = results / str(place) / "bench.json"
    traceback = (
        "" if isinstance(finished.exception, SystemExit | None) else "".join(format_exception(finished.exception))
    )
    return {
        "code": finished.exit_code,
        "out": finished.stdout,
        "err": finished.stderr + traceback,
        "record": json.loads(record.read_bytes()) if record.exists() else None,
    }


def _lower_default_counts() -> None:
    """Divide the default number of messages of every benchmark in this process, and let their noise be unknown."""
    from exchange_simulation.messaging import cell_turns
    from exchange_simulation.messaging.cell import LEAST_MESSAGES, Counts

    cell_turns.LEAST_WINDOW_S = 0.0  # type: ignore[attr-defined]

    usual_count = Counts.default_count

    def lower_count(counts: Counts, size: int, has_broker: bool, quick: bool) -> int:
        return max(LEAST_MESSAGES, usual_count(counts, size, has_broker, quick) // DIVISOR)

    Counts.default_count = lower_count  # type: ignore[method-assign]


def _write_no_pages() -> None:
    from exchange_simulation.messaging import running

    running.write_page = lambda folder, _record: folder / "bench.html"


if __name__ == "__main__":
    _lower_default_counts()
    if WITHOUT_PAGES in os.environ:
        _write_no_pages()
    results, *commands = sys.argv[1:]
    print(json.dumps([_outcome(Path(results), place, command) for place, command in enumerate(commands)]))
