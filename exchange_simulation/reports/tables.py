"""Tables in the terminal. No table loses a character: a table wider than its terminal continues in a block below.

A table has key columns, which name a row and are repeated in every block; figures, which stay whole on one line; and
columns of words at its end, which wrap, or move into a block of their own if there is too little room. If not even one
figure fits beside the keys, each row has its keys on one line and its figures below.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.padding import Padding
from rich.table import Column as RichColumn
from rich.table import Table
from rich.text import Text

PIPE_COLUMNS = 80
LEAST_COLUMNS = 40
LEAST_WORDS_WIDTH = 24
"""A column of words beside other columns is at least this wide."""
INDENT = 2
"""The blanks before figures that stand below their keys."""
Kind = Literal["key", "figure", "words"]
ORDER: tuple[Kind, ...] = ("key", "figure", "words")


def columns() -> int:
    """Return the terminal's width: COLUMNS if that is set, 80 in a pipe."""
    return max(shutil.get_terminal_size((PIPE_COLUMNS, 24)).columns, LEAST_COLUMNS)


def terminal() -> Console:
    """Return a console on stdout, as wide as its terminal."""
    return Console(width=columns(), highlight=False)


def indented(line: str, style: str = "") -> Padding:
    """Return an indented line, which explains the line above; its wrapped parts are indented too."""
    return Padding(Text(line, style), (0, 0, 0, INDENT), expand=False)


def warning(sentence: str) -> Text:
    """Return a line that a reader must know."""
    return Text.assemble(("!", "bold red"), f" {sentence}")


@dataclass(frozen=True)
class TableColumn:
    title: str
    kind: Kind
    from_right: bool


def key_column(title: str = "", *, from_right: bool = False) -> TableColumn:
    """Return a column that names the row."""
    return TableColumn(title, "key", from_right)


def figure_column(title: str = "") -> TableColumn:
    """Return a column of numbers. Its values stay on one line."""
    return TableColumn(title, "figure", from_right=True)


def words_column(title: str = "") -> TableColumn:
    """Return a column of sentences."""
    return TableColumn(title, "words", from_right=False)


def plain_table(
    *titles: TableColumn | str, gap: int = 2, header: bool = True, title_of_later_blocks: str = ""
) -> FoldingTable:
    """Return a table with `gap` blanks between columns; a column given as a plain title holds figures.

    `title_of_later_blocks` stands above each block after the first, whose first title should say the same.
    """
    columns = [title if isinstance(title, TableColumn) else figure_column(title) for title in titles]
    if columns != sorted(columns, key=lambda column: ORDER.index(column.kind)):
        raise ValueError(f"columns are in another order than {', '.join(ORDER)}: {titles}")
    return FoldingTable(columns, gap, header, title_of_later_blocks)


@dataclass
class FoldingTable:
    """Rows of text under columns, which rich lays out for the width at hand."""

    columns: Sequence[TableColumn]
    gap: int
    header: bool
    title_of_later_blocks: str
    _rows: list[tuple[list[Text], str]] = field(default_factory=list)

    def add_row(self, *cells: str | Text, style: str | None = None) -> None:
        """Add a row of cells from the left; missing cells at its end are empty."""
        texts = [cell if isinstance(cell, Text) else Text(cell) for cell in cells]
        while len(texts) < len(self.columns):
            texts.append(Text())
        self._rows.append((texts, style or ""))

    def __rich_console__(self, _console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the table in blocks. In this class, a place is the number of a column, from 0."""
        width = options.max_width
        widths = [self._natural_width(place) for place in range(len(self.columns))]
        keys, others = self._keys_and_others()
        widest_other = max((self._least_width(place, widths) for place in others), default=0)
        space = width - sum(widths[place] + self.gap for place in keys)
        if widest_other > space:
            yield from self._stacked(keys, list(self._blocks(others, widths, width - INDENT)), widths)
            return
        for number, block in enumerate(self._blocks(others, widths, space)):
            if number > 0:
                yield Text(f"\n{self.title_of_later_blocks}" if self.title_of_later_blocks else "", "bold")
            yield self._table(keys, block, widths, space)

    def _blocks(self, places: Sequence[int], widths: Sequence[int], space: int) -> Iterator[list[int]]:
        """Yield the columns in groups that fit beside each other into `space` characters."""
        block: list[int] = []
        block_width = 0
        for place in places:
            width = self._least_width(place, widths)
            if block and block_width + self.gap + width > space:
                yield block
                block = []
            block_width = block_width + self.gap + width if block else width
            block.append(place)
        yield block

    def _stacked(self, keys: list[int], blocks: list[list[int]], widths: Sequence[int]) -> Iterator[Text | Padding]:
        """Yield each row's keys on a line, its figures indented below: key and figure are wider than the terminal."""
        rows = list(self._rows)
        if self.header:
            titles = [Text(column.title.replace("\n", " ")) for column in self.columns]
            rows.insert(0, (titles, "bold"))
        for cells, style in rows:
            yield self._line(keys, cells, widths, style)
            for block in blocks:
                yield Padding(self._line(block, cells, widths, style), (0, 0, 0, INDENT))

    def _line(self, places: Sequence[int], cells: Sequence[Text], widths: Sequence[int], style: str) -> Text:
        """Return the cells of these columns in one line, each as wide as its column."""
        aligned = [cells[place].copy() for place in places]
        for place, cell in zip(places, aligned, strict=True):
            column = self.columns[place]
            if column.kind == "words":
                continue
            blanks = max(0, widths[place] - cell.cell_len)
            if column.from_right:
                cell.pad_left(blanks)
            else:
                cell.pad_right(blanks)
        line = Text(" " * self.gap).join(aligned)
        line.rstrip()
        line.stylize(style)
        return line

    def _keys_and_others(self) -> tuple[list[int], list[int]]:
        """Return the places of the key columns, and those of all other columns."""
        keys = []
        others = []
        for place, column in enumerate(self.columns):
            if column.kind == "key":
                keys.append(place)
            else:
                others.append(place)
        return keys, others

    def _least_width(self, place: int, widths: Sequence[int]) -> int:
        """Return the width that a column needs to stand beside others."""
        return min(widths[place], LEAST_WORDS_WIDTH) if self.columns[place].kind == "words" else widths[place]

    def _natural_width(self, place: int) -> int:
        """Return the width of the column's longest line."""
        texts = [cells[place].plain for cells, _ in self._rows]
        if self.header:
            texts.append(self.columns[place].title)
        width = 0
        for text in texts:
            for line in text.splitlines():
                width = max(width, cell_len(line))
        return width

    def _table(self, keys: list[int], block: list[int], widths: list[int], space: int) -> Table:
        """Return the table of one block. If a later block has words alone, rows without words are left out."""
        wrapping = [place for place in block if self.columns[place].kind == "words"]
        _narrow(widths, wrapping, block, space - self.gap * (len(block) - 1))
        rich_columns = [self._rich_column(place, widths[place]) for place in (*keys, *block)]
        table = Table(*rich_columns, box=None, pad_edge=False, padding=(0, self.gap, 0, 0), show_header=self.header)
        is_whole_table = len(keys) + len(block) == len(self.columns)
        has_figures = len(wrapping) < len(block)
        for cells, style in self._rows:
            has_words = any(cells[place].plain for place in wrapping)
            if is_whole_table or has_figures or has_words:
                table.add_row(*(cells[place] for place in (*keys, *block)), style=style)
        return table

    def _rich_column(self, place: int, width: int) -> RichColumn:
        justify: Literal["left", "right"] = "right" if self.columns[place].from_right else "left"
        return RichColumn(Text(self.columns[place].title), justify=justify, width=width, overflow="fold")


def _narrow(widths: list[int], wrapping: Sequence[int], block: Sequence[int], space: int) -> None:
    """Make the widest of the columns that wrap narrower until the block fits into `space` characters."""
    while wrapping and sum(widths[place] for place in block) > space:
        widest = max(wrapping, key=lambda place: widths[place])
        widths[widest] -= 1
