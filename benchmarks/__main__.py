"""`python -m benchmarks [NAME ...]`: run the benchmarks, and print their table.

A benchmark is a module of this package with a function `rows(repeats)`. Each row of the table compares our figure with
a reference's, round by round: it has the medians of both, and the median, least and highest ratio of ours to the
reference's. The exit code is 1 if a row misses the ratio that it must reach, or a benchmark fails.
"""

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

MODULES_WITHOUT_ROWS = (
    "__main__",
    "command_cost",
    "comparison",
    "cpp",
    "delayed",
    "exact_figures",
    "gate_power",
    "reference",
    "reference_book",
    "synthetic_runs",
)
"""Modules that are no benchmarks, but that benchmarks use."""
BENCHMARKS = [
    module.name for module in pkgutil.iter_modules(benchmarks.__path__) if module.name not in MODULES_WITHOUT_ROWS
]
WIDTH_IN_A_FILE = 160
"""Columns of the table if the output is no terminal, so that no line is folded."""


class FailedBenchmark(BenchmarkRow):
    """The row of a benchmark that ended with an error."""

    @property
    def is_reached(self) -> bool:
        return False


def rows_of(names: Iterable[str], repeats: int) -> Iterator[tuple[str, BenchmarkRow]]:
    """Run the benchmarks one after the other; yields (benchmark, row). An error is printed, and gives a row."""
    for name in names:
        try:
            for row in importlib.import_module(f"benchmarks.{name}").rows(repeats):
                yield name, row
        except Exception:  # noqa: BLE001
            traceback.print_exc()
            yield name, FailedBenchmark(title="failed: see above", against="", unit="", ours=[], reference=[])


def table_of(rows: Iterator[tuple[str, BenchmarkRow]]) -> tuple[Table, bool]:
    """Return the table, and whether every target that could be judged was reached."""
    table = Table(box=None, pad_edge=False)
    for column in ("benchmark", "what", "against"):
        table.add_column(column)
    for column in ("n", "ours", "reference", "ratio", "min..max", "reach", "aim"):
        table.add_column(column, justify="right", no_wrap=True)
    all_reached = True
    for name, row in rows:
        table.add_row(name, row.title, row.against, *figures_of(row), *targets_of(row))
        if row.is_reached is False:
            all_reached = False
    return table, all_reached


def figures_of(row: BenchmarkRow) -> list[str]:
    """Return the cells n, ours, reference, ratio, min..max; cells that have no figure are empty."""
    if not row.ours:
        return ["", "", "", "", ""]
    number = str(len(row.ours)) if len(row.ours) > 1 else ""
    ours = f"{three_digits(median(row.ours))} {row.unit}"
    if not row.reference:
        is_reference_missing = bool(row.against)  # a reference that is named, but could not be built, has no figures
        return [number, ours, "not built" if is_reference_missing else "", "", ""]
    ratio = f"{median(row.ratios):.2f}"
    range_of_ratios = f"{min(row.ratios):.2f}..{max(row.ratios):.2f}"
    return [number, ours, three_digits(median(row.reference)), ratio, range_of_ratios]


def targets_of(row: BenchmarkRow) -> list[str]:
    """Return the cells reach and aim; the first also says if the required ratio was missed."""
    required = f"{row.bound} {row.required:g}" if row.required else ""
    hoped_for = f"{row.hoped_for:g}" if row.hoped_for else ""
    if row.is_reached is False:
        required = f"[red]missed[/] {required}".rstrip()
    return [required, hoped_for]


def three_digits(figure: float) -> str:
    """Return a figure with three digits.

    For example: 38.7 M, 412 k, 0.521
    """
    if figure >= 1e6:
        return f"{figure / 1e6:.3g} M"
    if figure >= 1e3:
        return f"{figure / 1e3:.3g} k"
    return f"{figure:.3g}"


def conditions() -> str:
    """Return the line below the table: processor, versions, compiler, and what the figures are."""
    python = f"Python {platform.python_version()}, numba {version('numba')}, numpy {version('numpy')}"
    flags = f" {' '.join(FLAGS)}" if compiler() else ""
    return f"{processor()}; {python}; {compiler_version()}{flags}; medians of n, in turns with a reference"


@click.command()
@click.argument("names", nargs=-1, type=click.Choice(BENCHMARKS))
@click.option("--repeats", default=7, show_default=True, type=click.IntRange(min=1), help="Rounds of each comparison.")
def main(names: tuple[str, ...], repeats: int) -> None:
    """Compare our own code with references. NAMES: the benchmarks to run; without a name all of them."""
    console = Console()
    if not console.is_terminal:
        console.width = WIDTH_IN_A_FILE
    with console.status("measuring"):
        table, all_reached = table_of(rows_of(names or BENCHMARKS, repeats))
    console.print(table)
    console.print(conditions(), style="dim")
    raise SystemExit(0 if all_reached else 1)


if __name__ == "__main__":
    main()
