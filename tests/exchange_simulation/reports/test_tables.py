"""No table loses a character, however narrow its terminal is."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from exchange_simulation.reports.tables import FoldingTable, columns, figure, key, plain_table, words

REASON = "the engine held 7,612 of 9,000 orders/s while other work took 23 % of the processors [8 of 10 runs]"


def drawn(table: FoldingTable, width: int) -> list[str]:
    console = Console(width=width, highlight=False)
    with console.capture() as captured:
        console.print(table)
    return [line.rstrip() for line in captured.get().splitlines()]


def wide_table() -> FoldingTable:
    table = plain_table(key("orders/s", from_right=True), key(), *(f"figure {n}" for n in range(6)), words("why not"))
    for row in range(3):
        figures = [f"{row}{n},000 ({row}{n}1..{row}{n}2)" for n in range(6)]
        table.add_row(f"{row + 1},000", "zeromq, packing 10", *figures, REASON if row else "")
    return table


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_every_block_repeats_the_keys_beside_whole_figures(width):
    lines = drawn(wide_table(), width)

    assert max(map(cell_len, lines)) <= width
    for row in range(3):
        for n in range(6):
            line = next(line for line in lines if f"{row}{n},000 ({row}{n}1..{row}{n}2)" in line)
            assert line.lstrip().startswith(f"{row + 1},000  zeromq, packing 10")


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_a_reason_wraps_and_loses_no_word(width):
    table = plain_table(key("orders/s"), "held", words("why not"))
    table.add_row("9,000", "2 of 10", REASON)
    said = re.sub(r"\s+", " ", " ".join(drawn(table, width)))

    assert [word for word in REASON.split() if word not in said.split()] == []


def test_rows_without_a_reason_are_left_out_of_a_block_of_reasons():
    lines = drawn(wide_table(), 60)

    reasons = lines[next(n for n, line in enumerate(lines) if "why not" in line) :]
    assert not any(line.lstrip().startswith("1,000") for line in reasons)
    assert any(line.lstrip().startswith("2,000") for line in reasons)


def test_a_key_that_is_wider_than_the_terminal_is_folded():
    table = plain_table(key("arm"), "p50 us")
    table.add_row("x" * 90, "1,234")
    lines = drawn(table, 60)

    assert "".join(lines).count("x") == 90
    assert any("1,234" in line for line in lines)


cells = st.text(st.sampled_from("0123456789,.xyz[]"), max_size=30)


@given(
    st.lists(st.tuples(cells, cells, cells, cells), min_size=1, max_size=4),
    st.integers(40, 120),
    st.sampled_from([figure, words]),
)
def test_no_character_is_lost_at_any_width(rows, width, kind):
    table = plain_table(key(), figure("a"), kind("b"), words("c"), header=False)
    for row in rows:
        table.add_row(*row)
    said = "".join(drawn(table, width))

    assert all(said.count(letter) >= "".join(map("".join, rows)).count(letter) for letter in "0123456789,.xyz[]")
    assert max(map(cell_len, drawn(table, width)), default=0) <= width


def test_a_pipe_has_80_columns_unless_columns_says_otherwise(monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    assert columns() == 80
    monkeypatch.setenv("COLUMNS", "132")
    assert columns() == 132


def test_columns_in_another_order_are_refused():
    with pytest.raises(ValueError, match="key, figure, words"):
        plain_table(key(), words("why"), "p50")
