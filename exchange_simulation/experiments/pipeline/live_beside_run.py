"""`exchange run --live-spark`: `exchange spark live` as a child process beside the run, in place of the progress bar.

    launcher ──starts──▶ exchange spark live RUN ──its JVM──▶ Spark
        ◀──ready: everything is loaded─────        ──▶ terminal

The components start when the query is ready, so that the start of the JVM is not measured. The child has its own
process group, which ends with the run in any case. A query that fails does not disturb the run.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import click

from exchange.settings import RunSettings
from exchange.words import printable
from exchange_simulation.launching.interrupts import interruptible
from exchange_simulation.launching.launch.watch import OnSecond
from exchange_simulation.launching.process_group import ProcessGroup
from exchange_simulation.reports.progress import progress_bar

ROLE = "spark live"
WARM_S = 120.0
"""The longest time in which the child must get ready."""
LAST_ROWS_S = 10.0
"""The longest wait for the run's last rows after its end. On an idle machine they take a second or two."""


@contextlib.contextmanager
def spark_beside(settings: RunSettings, folder: Path) -> Iterator[OnSecond]:
    """Start a query beside the run, and yield the function that shows a second of the run.

    This function does nothing, since the query shows the seconds. If the query does not get ready, it is stopped, and
    the function shows a progress bar.
    """
    with ProcessGroup() as processes, contextlib.ExitStack() as progress:
        processes.start(ROLE, [*ROLE.split(), "--launched", str(folder)], None, {"TMPDIR": str(processes.folder)})
        child = processes.children[ROLE]
        if _is_ready(child):
            yield lambda _: None
            if not _has_ended_well(child):
                advice = f"the live table is not whole; make it so with: exchange spark live {folder}"
                click.echo(printable(advice), err=True)
        else:
            click.echo("no live table: Spark did not get ready; the run goes on without", err=True)
            processes.signal(ROLE)
            yield progress.enter_context(progress_bar(settings))


def _is_ready(child: subprocess.Popen[bytes]) -> bool:
    """Return True once the child says that it is ready; False if it ends before that, or takes more than WARM_S.

    KeyboardInterrupt as soon as a signal comes.
    """
    assert child.stdout is not None
    output = b""
    until_s = time.monotonic() + WARM_S
    with selectors.DefaultSelector() as selector:
        selector.register(child.stdout, selectors.EVENT_READ)
        while b'"ready"' not in output:
            with interruptible():
                has_output = selector.select(max(until_s - time.monotonic(), 0))
            if not has_output:
                return False
            chunk = os.read(child.stdout.fileno(), 4096)
            if not chunk:
                return False
            output += chunk
    return True


def _has_ended_well(child: subprocess.Popen[bytes]) -> bool:
    """Wait for the child's end for at most LAST_ROWS_S; return True if it ended without error."""
    try:
        return child.wait(LAST_ROWS_S) == 0
    except subprocess.TimeoutExpired:
        return False
