"""Several `exchange bench` commands in one process of their own, which imports only once; their outcomes, as JSON."""

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
"""code, out, err, and the record that the command left, if any."""


WITHOUT_PAGES = "EXCHANGE_TESTS_WITHOUT_PAGES"
FEWER = 5
"""So many times fewer messages than --quick has; a measurement that is too short with them makes itself longer."""


def benches(results: Path, *commands: str, pages: bool = False, **env: str) -> list[Outcome]:
    """Their folders are results/0, results/1, ...; a page costs 0.1 s, and the first one 0.5 s more."""
    env |= {} if pages else {WITHOUT_PAGES: "1"}
    done = subprocess.run(
        [sys.executable, "-m", __name__, str(results), *commands],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=True,
        env={**os.environ, **env},
        cwd=Path(__file__).parents[3],
    )
    return json.loads(done.stdout)


def bench(results: Path, command: str, **env: str) -> Outcome:
    return benches(results, command, **env)[0]


def _outcome(results: Path, place: int, command: str) -> Outcome:
    from exchange_simulation.cli.main import main

    words = ["bench", *command.split(), "--results", str(results), "--name", str(place)]
    done = CliRunner().invoke(main, words)
    record = results / str(place) / "bench.json"
    unexpected = "" if isinstance(done.exception, SystemExit | None) else "".join(format_exception(done.exception))
    return {
        "code": done.exit_code,
        "out": done.stdout,
        "err": done.stderr + unexpected,
        "record": json.loads(record.read_bytes()) if record.exists() else None,
    }


def _with_fewer_messages() -> None:
    from exchange_simulation.messaging.benchmark import LEAST_MESSAGES, Counts

    usual = Counts.of
    fewer = lambda self, *what: max(LEAST_MESSAGES, usual(self, *what) // FEWER)  # noqa: E731
    setattr(Counts, "of", fewer)  # noqa: B010


if __name__ == "__main__":
    _with_fewer_messages()
    if WITHOUT_PAGES in os.environ:
        from exchange_simulation.messaging import running

        running.write_page = lambda folder, _record: folder / "bench.html"
    results, *commands = sys.argv[1:]
    print(json.dumps([_outcome(Path(results), place, command) for place, command in enumerate(commands)]))
