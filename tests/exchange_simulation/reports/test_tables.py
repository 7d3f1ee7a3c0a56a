"""No table loses a character, however narrow its terminal is."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from exchange_simulation.reports.tables import (
    FoldingTable,
    columns,
    figure_column,
    key_column,
    plain_table,
    words_column,
)

REASON = "the engine held 7,612 of 9,000 orders/s while other work took 23 % of the processors [8 of 10 runs]"


def lines_of(table: FoldingTable, width: int) -> list[str]:
    """Return the lines of the table in a terminal of this width."""
    console = Console(width=width, highlight=False)
    with console.capture() as captured:
        console.print(table)
    return [line.rstrip() for line in captured.get().splitlines()]


ROWS = 3
FIGURES = 6


def cell_of(row: int, number: int) -> str:
    """Return a figure that tells its row and its column."""
    return f"{row}{number},000 ({row}{number}1..{row}{number}2)"


def wide_table() -> FoldingTable:
    """Return a table of three rows, of which the first has no reason."""
    titles = [f"figure {number}" for number in range(FIGURES)]
    table = plain_table(key_column("orders/s", from_right=True), key_column(), *titles, words_column("why not"))
    for row in range(ROWS):
        figures = [cell_of(row, number) for number in range(FIGURES)]
        reason = "" if row == 0 else REASON
        table.add_row(f"{row + 1},000", "zeromq, packing 10", *figures, reason)
    return table


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_every_block_repeats_the_keys_beside_whole_figures(width):
    lines = lines_of(wide_table(), width)

    assert max(map(cell_len, lines)) <= width
    for row in range(ROWS):
        for number in range(FIGURES):
            (line,) = [line for line in lines if cell_of(row, number) in line]
            assert line.lstrip().startswith(f"{row + 1},000  zeromq, packing 10")


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_a_reason_wraps_and_loses_no_word(width):
    table = plain_table(key_column("orders/s"), "held", words_column("why not"))
    table.add_row("9,000", "2 of 10", REASON)
    printed_words = " ".join(lines_of(table, width)).split()
    assert set(REASON.split()) <= set(printed_words)


def test_rows_without_a_reason_are_left_out_of_a_block_of_reasons():
    lines = lines_of(wide_table(), 60)

    while "why not" not in lines[0]:
        lines.pop(0)
    keys = [line.split()[0] for line in lines if line.strip()]
    assert "1,000" not in keys
    assert "2,000" in keys


def test_a_key_that_is_wider_than_the_terminal_is_folded():
    table = plain_table(key_column("arm"), "p50 us")
    table.add_row("x" * 90, "1,234")
    lines = lines_of(table, 60)

    assert "".join(lines).count("x") == 90
    assert any("1,234" in line for line in lines)


cells = st.text(st.sampled_from("0123456789,.xyz[]"), max_size=30)


@given(
    st.lists(st.tuples(cells, cells, cells, cells), min_size=1, max_size=4),
    st.integers(40, 120),
    st.sampled_from([figure_column, words_column]),
)
def test_no_character_is_lost_at_any_width(rows, width, kind):
    table = plain_table(key_column(), figure_column("a"), kind("b"), words_column("c"), header=False)
    for row in rows:
        table.add_row(*row)
    lines = lines_of(table, width)
    printed = Counter("".join(lines))
    given_characters = Counter("".join(cell for row in rows for cell in row))
    assert given_characters <= printed
    assert max(map(cell_len, lines), default=0) <= width


def test_a_pipe_has_80_columns_unless_the_variable_columns_is_set(monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    assert columns() == 80
    monkeypatch.setenv("COLUMNS", "132")
    assert columns() == 132


def test_columns_in_another_order_are_refused():
    with pytest.raises(ValueError, match="key, figure, words"):
        plain_table(key_column(), words_column("why"), "p50")
