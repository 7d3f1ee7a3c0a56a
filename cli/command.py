"""How a command's help is laid out: its options under headings, by what they are about."""

from __future__ import annotations

import click

from runs.options import GROUPS

OTHERS = "Other options"


class Command(click.Command):
    """A command whose options stand in groups."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        heading_of = {name: f"{heading} options" for heading, names in GROUPS.items() for name in names}
        rows: dict[str, list[tuple[str, str]]] = {heading: [] for heading in (*heading_of.values(), OTHERS)}
        for param in self.get_params(ctx):
            if record := param.get_help_record(ctx):
                rows[heading_of.get(param.name or "", OTHERS)].append(record)
        for heading, records in rows.items():
            if records:
                with formatter.section(heading):
                    formatter.write_dl(records)
