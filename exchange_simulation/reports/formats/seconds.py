"""The seconds of a run as rows of a table in the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from exchange.second_columns import SecondColumn, Unit
from exchange_simulation.reports.formats.few_orders import figure_cell

WHOLE_NUMBER = "{:,.0f}"
SECOND_FORMATS = {Unit.CORES: "{:.2f}"}
"""The templates of a second's figures; those of other units are WHOLE_NUMBER."""


def second_cells(row: Mapping[str, Any], columns: Iterable[SecondColumn], clock: str) -> list[str]:
    """Return a second's number and its figures in these columns; completion times are those of `clock`."""
    cells = [f"{row['second']:,}"]
    for column in columns:
        figure = column.figure.format(clock=clock)
        template = SECOND_FORMATS.get(column.unit, WHOLE_NUMBER)
        cells.append(figure_cell(row, figure, template))
    return cells
