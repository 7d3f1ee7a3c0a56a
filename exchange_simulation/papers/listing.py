"""The papers in the terminal: each in a line, and the list of all their figures and tables with their commands."""

from __future__ import annotations

from rich.padding import Padding

from exchange_simulation.papers.catalogue import PAPERS, coverage
from exchange_simulation.reports.tables import key_column, plain_table, terminal, words_column


def show_papers() -> None:
    """Print a line for each paper."""
    table = plain_table(key_column(), "claims", "commands", words_column(), header=True)
    for paper in PAPERS.values():
        table.add_row(paper.name, str(len(paper.claims)), str(len(paper.parts)), paper.title)
    terminal().print(table)


def show_coverage() -> None:
    """Print each command of the papers with the figures and tables that it makes, and what nothing here measures."""
    console = terminal()
    for paper in PAPERS.values():
        console.print(f"[bold]{paper.title}[/bold]")
        for command, items in coverage(paper):
            console.print(command or "not measured here", highlight=False, soft_wrap=True)
            for item in items:
                console.print(Padding(item, (0, 0, 0, 4), expand=False), highlight=False)
        console.print()
