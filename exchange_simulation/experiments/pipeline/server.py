"""`exchange spark server`: a warm Spark for the tables of a results folder, which later queries find and use."""

from __future__ import annotations

import os
import select
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from exchange.words import printable
from exchange_simulation.experiments.pipeline.jobs import as_user_errors, default_tables
from exchange_simulation.experiments.pipeline.masters import MASTER
from exchange_simulation.launching.command_line import exchange_command
from exchange_simulation.launching.errors import UserError
from exchange_simulation.launching.files import local_path
from exchange_simulation.launching.interrupts import ended_as_by_ctrl_c
from spark.sessions.warm_server import ServerFile, server_of, warm_server

STATEMENT_TO_WARM = "select count(*) from runs"


def serve(results: Path, tables: str | None, settings: Mapping[str, str]) -> int:
    """Run a server until Ctrl-C or SIGTERM, which is exit code 0. UserError, ClickException."""
    folder = _folder_of(results, tables)
    with as_user_errors(), ended_as_by_ctrl_c() as interruption:
        try:
            with warm_server(folder, MASTER, settings) as (server, jvm):
                # pyspark's own handler would cancel jobs in place of ending the command.
                signal.signal(signal.SIGINT, signal.default_int_handler)
                ServerFile(folder).write(server)
                _warm(folder)
                click.echo(printable(f"ready: exchange spark sql and others use it for {folder}; Ctrl-C ends it"))
                jvm.wait()
        except KeyboardInterrupt:
            interruption.forget()
            return 0
    raise click.ClickException(f"the server's JVM ended by itself, with exit code {jvm.returncode}: start it again")


def stop(results: Path, tables: str | None) -> int:
    """Ask the server of these tables to end, and wait for its end. UserError if there is none."""
    folder = _folder_of(results, tables)
    server = server_of(folder)
    if server is None:
        raise UserError(f"no server runs for {folder}")
    process = os.pidfd_open(server.pid)
    try:
        signal.pidfd_send_signal(process, signal.SIGTERM)
        select.select([process], [], [])  # readable once the process has ended
    finally:
        os.close(process)
    return 0


def _folder_of(results: Path, tables: str | None) -> Path:
    """Return the folder of the tables. UserError if it is not here, or not on this machine."""
    location = tables or default_tables(results)
    folder = local_path(location)
    if folder is None:
        raise UserError(f"--tables {location} is not on this machine: a server is for a folder here")
    if not folder.is_dir():
        raise UserError(f"{folder} is no folder: make the tables first, with exchange spark ingest")
    return folder


def _warm(folder: Path) -> None:
    """Let a client ask, since the first query through a new JVM takes ten times as long as later ones."""
    command: list[Any] = exchange_command("spark", "sql", STATEMENT_TO_WARM, "--csv", "--tables", folder)
    subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
