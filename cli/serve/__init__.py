"""`exchange serve`: a results directory as pages in the browser: runs, any two side by side, the run under way."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import click

from cli.results import results_option


@click.command()
@results_option
@click.option("--port", type=click.IntRange(0, 65_535), default=0, help="On 127.0.0.1.  [default: a free one]")
def command(results: str, port: int) -> None:
    """Show a results directory in the browser, follow runs live, start and stop them.

    It prints the address, which holds a secret: only a browser that has it gets an answer. It listens on 127.0.0.1
    alone. Ctrl-C ends it, and the run that was started from it.

    Example: exchange serve --results results
    """
    from cli.results.kinds import folders
    from cli.serve.runs import Runs
    from cli.serve.server import Server
    from cli.serve.site import Site
    from runs.errors import UserError
    from runs.interrupts import ended_as_by_ctrl_c
    from runs.process_group import ProcessGroup

    if not os.path.isdir(results):
        raise UserError(f"{results} is no folder: choose another one with --results, or make it with exchange run")
    folder = Path(results)
    folders(folder)  # an error now is better than a page that says it
    with (
        ended_as_by_ctrl_c(),
        ProcessGroup() as group,
        contextlib.closing(Runs(folder, group)) as runs,
        Server(Site(folder, runs, group), port) as server,
    ):
        click.echo(server.address)
        click.echo(f"shows {results}; Ctrl-C ends it, and the run that was started from it", err=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            click.echo("ended", err=True)
