"""`python -m benchmarks [NAME ...]`: run the benchmarks, print their table."""

from __future__ import annotations

import importlib
import pkgutil
import platform
import traceback
from collections.abc import Iterable, Iterator
from importlib.metadata import version
from statistics import median

import click
from rich.console import Console
from rich.table import Table

import benchmarks
from benchmarks.comparison import BenchmarkRow, processor
from benchmarks.cpp import FLAGS, compiler, compiler_version

PARTS = ("__main__", "comparison", "cpp", "delayed", "exact_figures", "reference_book", "synthetic_runs")
"""Modules that are no benchmarks."""
BENCHMARKS = [module.name for module in pkgutil.iter_modules(benchmarks.__path__) if module.name not in PARTS]


class Failed(BenchmarkRow):
    """A benchmark that ended with an error, which is printed. It costs its own rows alone."""

    @property
    def is_reached(self) -> bool:
        return False


def rows_of(names: Iterable[str], repeats: int) -> Iterator[tuple[str, BenchmarkRow]]:
    for name in names:
        try:
            for row in importlib.import_module(f"benchmarks.{name}").rows(repeats):
                yield name, row
        except Exception:  # noqa: BLE001
            traceback.print_exc()
            yield name, Failed("failed: see above", "", "", [], [])


def conditions() -> str:
    python = f"Python {platform.python_version()}, numba {version('numba')}, numpy {version('numpy')}"
    flags = f" {' '.join(FLAGS)}" if compiler() else ""
    return f"{processor()}; {python}; {compiler_version()}{flags}; medians of n, in turns with a reference"


def table_of(rows: Iterator[tuple[str, BenchmarkRow]]) -> tuple[Table, bool]:
    """The table, and whether every target that could be judged was reached."""
    table, reached = Table(box=None, pad_edge=False), True
    for column in ("benchmark", "what", "against"):
        table.add_column(column)
    for column in ("n", "ours", "reference", "ratio", "min..max", "reach", "aim"):
        table.add_column(column, justify="right", no_wrap=True)
    for name, row in rows:
        table.add_row(name, row.what, row.against, *figures(row))
        reached &= row.is_reached is not False
    return table, reached


def figures(row: BenchmarkRow) -> list[str]:
    reach = f"{row.bound} {row.reach:g}" if row.reach else ""
    missed = "[red]missed[/]" if row.is_reached is False else ""
    targets = [" ".join(filter(None, (missed, reach))), f"{row.aim:g}" if row.aim else ""]
    if not row.ours:
        return ["", "", "", "", "", *targets]
    ours = ["" if len(row.ours) == 1 else str(len(row.ours)), f"{short(median(row.ours))} {row.unit}"]
    if not row.reference:
        return [*ours, "not built" if row.against else "", "", "", *targets]
    ratios = [f"{median(row.ratios):.2f}", f"{min(row.ratios):.2f}..{max(row.ratios):.2f}"]
    return [*ours, short(median(row.reference)), *ratios, *targets]


def short(rate: float) -> str:
    """Three digits: 38.7 M."""
    for factor, letter in ((1e6, " M"), (1e3, " k")):
        if rate >= factor:
            return f"{rate / factor:.3g}{letter}"
    return f"{rate:.3g}"


@click.command()
@click.argument("names", nargs=-1, type=click.Choice(BENCHMARKS))
@click.option("--repeats", default=7, show_default=True, type=click.IntRange(min=1), help="Rounds of each comparison.")
def main(names: tuple[str, ...], repeats: int) -> None:
    """Compare our own code with references. NAMES: which benchmarks; all of them without one."""
    console = Console()
    if not console.is_terminal:
        console.width = 160  # a file folds no lines
    with console.status("measuring"):
        table, reached = table_of(rows_of(names or BENCHMARKS, repeats))
    console.print(table)
    console.print(conditions(), style="dim")
    raise SystemExit(0 if reached else 1)


if __name__ == "__main__":
    main()
