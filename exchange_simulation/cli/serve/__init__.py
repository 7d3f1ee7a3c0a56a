"""`exchange serve`: a results directory as pages in the browser: runs, any two side by side, the run under way."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import click

from exchange_simulation.cli.results import results_option


@click.command()
@results_option
@click.option("--port", type=click.IntRange(0, 65_535), default=0, help="On 127.0.0.1.  [default: a free one]")
def command(results: str, port: int) -> None:
    """Show a results directory in the browser, follow runs live, start and stop them.

    It prints the address, which holds a secret: only a browser that has it gets an answer. It listens on 127.0.0.1
    alone. Ctrl-C ends it, and the run that was started from it.

    Example: exchange serve --results results
    """
    from exchange_simulation.cli.results.kinds import folders
    from exchange_simulation.cli.serve.runs import Runs
    from exchange_simulation.cli.serve.server import Server
    from exchange_simulation.cli.serve.site import Site
    from exchange_simulation.launching.errors import UserError
    from exchange_simulation.launching.interrupts import ended_as_by_ctrl_c
    from exchange_simulation.launching.process_group import ProcessGroup

    if not os.path.isdir(results):
        raise UserError(f"{results} is no folder: choose another one with --results, or make it with exchange run")
    folder = Path(results)
    folders(folder)  # an error now is better than a page with the error
    with (
        ended_as_by_ctrl_c() as interruption,
        ProcessGroup() as group,
        contextlib.ExitStack() as opened,
    ):
        runs = Runs(folder, group)
        opened.callback(runs.stop)
        site = Site(folder, runs, group)
        server = opened.enter_context(Server(site.routes, port, site.on_mistake))
        click.echo(server.address)
        click.echo(f"shows {results}; Ctrl-C ends it, and the run that was started from it", err=True)
        try:
            server.run()
        except KeyboardInterrupt:
            interruption.forget()
            click.echo("ended", err=True)
