"""The `exchange` command. A subcommand is a file of experiments/commands, loaded when it is asked for."""

from __future__ import annotations

import importlib
import os
import pkgutil

import click

from experiments import commands

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
"""NumPy's linear algebra, which nothing here uses, would start and spin a thread a processor in every component."""


class Subcommands(click.Group):
    """Finds `exchange NAME` in experiments/commands/NAME.py, as `command`."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return [module.name for module in pkgutil.iter_modules(commands.__path__)]

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in self.list_commands(ctx):
            return None
        command: click.Command = importlib.import_module(f"experiments.commands.{name}").command
        return command


@click.group(cls=Subcommands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="exchange-simulation", prog_name="exchange")
def main() -> None:
    """A stock exchange simulation with which people measure messaging."""
