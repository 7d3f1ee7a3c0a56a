"""`exchange bench`: the messaging benchmarks of the papers, one subcommand each."""

from __future__ import annotations

import click

OTHERS = ("suite", "role")
"""What is no benchmark: all of them, and a part of one."""


class Benchmarks(click.Group):
    """`exchange bench NAME` is made of what experiments/bench/benchmarks/NAME.py declares."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        from messaging.catalogue import names

        return [*names(), *OTHERS]

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        from cli.bench_commands import command_of, suite_command
        from cli.bench_role import role_command
        from messaging.catalogue import benchmark_of

        if name not in self.list_commands(ctx):
            return None
        others = {"suite": suite_command, "role": role_command}
        return others[name]() if name in others else command_of(benchmark_of(name))


@click.group(cls=Benchmarks, invoke_without_command=True)
@click.pass_context
def command(ctx: click.Context) -> None:
    """The messaging benchmarks of the papers: alone, it lists them.

    Example: exchange bench de-spsc --transport amqp,zeromq --sizes 1B..1MiB
    """
    if ctx.invoked_subcommand is None:
        from messaging.listing import show

        show()
