"""Options that several benchmarks have."""

from __future__ import annotations

import click

from experiments.bench.sizes import Sizes

SIZES = click.Option(["--sizes"], type=Sizes(), default="1B..1MiB", show_default=True, metavar="SIZE..SIZE",
                     help="Message sizes: a range that doubles, or a list, as 8,64,1KiB.")  # fmt: skip
COUNT = click.Option(["--count"], type=click.IntRange(2, 1 << 39),
                     help="Messages of each cell.  [default: fewer of large ones, and over a broker]")  # fmt: skip
