"""A fault matrix in the terminal: the answer, a row for each fault, a column for each transport, the details."""

from __future__ import annotations

from rich.text import Text

from exchange.json_records import Record
from exchange.unique import unique
from exchange.words import counted
from exchange_simulation.reports.formats.numbers import ABSENT, whole_number
from exchange_simulation.reports.formats.times import time_in_words
from exchange_simulation.reports.tables import (
    FoldingTable,
    figure_column,
    indented,
    key_column,
    plain_table,
    terminal,
    words_column,
)

COUNTS = ("doubled", "reordered", "unreported")
PHASES = ("before", "during", "after")
LEGEND = (
    "A cell: orders lost of those sent, and how long nothing was answered (end: to the end of the run). "
    "! marks orders that are missing from the record, and runs that hung."
)


def measured_cells(record: Record) -> list[Record]:
    """Return the cells that were run."""
    return [cell for cell in record["cells"] if "skipped" not in cell]


def is_unreported(cell: Record) -> bool:
    """Return whether orders are missing from the run's record, or the run did not end."""
    return bool(cell["hangs"] or cell["orders"]["unreported"])


def fails(record: Record) -> bool:
    """Return whether orders are missing from a run's record, the matrix is not whole, or no fault could be tried."""
    cells = measured_cells(record)
    if record["status"] != "complete" or not cells:
        return True
    return any(is_unreported(cell) for cell in cells)


def transports_of(record: Record) -> list[str]:
    """Return the transports of the matrix, a column each."""
    return unique(cell["over"] for cell in record["cells"])


def cell_of(record: Record, fault: str, transport: str) -> Record | None:
    for cell in record["cells"]:
        if cell["fault"] == fault and cell["over"] == transport:
            found_cell: Record = cell
            return found_cell
    return None


def answer(record: Record) -> list[str]:
    """Return a sentence on the lost orders and on whether the records count them, then a sentence on each transport."""
    cells = measured_cells(record)
    sentences = [_sentence_on_losses(record, cells)]
    for transport in transports_of(record):
        cells_of_transport = [cell for cell in cells if cell["over"] == transport]
        sentences.append(_sentence_on_transport(transport, cells_of_transport))
    return sentences


def _sentence_on_losses(record: Record, cells: list[Record]) -> str:
    """Return a sentence on the orders that were lost in the cells that were run.

    For example: 12 orders were lost in 3 of 30 runs, all counted in the records; 2 not possible here
    """
    lost = sum(cell["orders"]["lost"] for cell in cells)
    with_losses = [cell for cell in cells if cell["orders"]["lost"]]
    if cells:
        orders = counted(lost, "orders") if lost else "no order"
        were = "were" if lost > 1 else "was"
        words = f"{orders} {were} lost in {len(with_losses) or 'any'} of {counted(len(cells), 'runs')}"
    else:
        words = "no fault could be tried"
    if record["status"] != "complete":
        words += f" (of {record['planned_cells']} planned)"
    unreported = _clause_on_unreported(cells)
    if unreported:
        words += unreported
    elif lost:
        words += ", all counted in the records"
    skipped = len(record["cells"]) - len(cells)
    return f"{words}; {skipped} not possible here" if skipped else words


def _clause_on_unreported(cells: list[Record]) -> str:
    """Return words on orders that are missing from the records, and on runs that hung; empty if there are none.

    For example: ": 3 orders MISSING FROM THE RECORDS; 1 run hung"
    """
    words = ""
    unreported = sum(cell["orders"]["unreported"] for cell in cells)
    if unreported:
        words += f": {counted(unreported, 'orders')} MISSING FROM THE RECORDS"
    hung = sum(cell["hangs"] for cell in cells)
    if hung:
        words += f"; {counted(hung, 'runs')} hung"
    return words


def _sentence_on_transport(transport: str, cells: list[Record]) -> str:
    """Return a sentence on the cells over one transport.

    For example: over zeromq, 11 of 15 faults cost orders; the exchange answered again after 5 of 15
    """
    if not cells:
        return f"over {transport}, no fault could be tried: the details say why"
    harmful = len([cell for cell in cells if cell["orders"]["lost"]])
    came_back = len([cell for cell in cells if cell["came_back"]])
    doubled = len([cell for cell in cells if cell["orders"]["doubled"] or cell["orders"]["reordered"]])
    words = f"over {transport}, {harmful or 'none'} of {counted(len(cells), 'faults')} cost orders"
    words += f"; the exchange answered again after {came_back or 'none'} of {len(cells)}"
    if doubled:
        words += f"; {counted(doubled, 'runs')} doubled or reordered orders"
    return words


def show(record: Record) -> None:
    """Print faults.json's content."""
    console = terminal()
    head, *others = answer(record)
    console.print(head, style="bold", markup=False)
    for line in others:
        console.print(indented(line))
    console.print()
    console.print(_matrix(record))
    console.print(LEGEND, style="dim", markup=False)
    console.print()
    console.print(_details(record))


def _matrix(record: Record) -> FoldingTable:
    transports = transports_of(record)
    table = plain_table(key_column("fault"), *(figure_column(transport) for transport in transports))
    for fault in record["faults"]:
        summaries = [cell_summary(cell_of(record, fault, transport)) for transport in transports]
        table.add_row(fault, *(Text(summary) for summary in summaries))
    return table


def cell_summary(cell: Record | None) -> str:
    """Return a cell in words: orders lost, and seconds without an answer; "end" if no answer came any more.

    For example: 12 of 6,000, 1.52 s
    """
    if cell is None:
        return ABSENT
    if "skipped" in cell:
        return "not possible here"
    orders = cell["orders"]
    mark = "! " if is_unreported(cell) else ""
    seconds = cell["without_service_s"]
    if seconds is None:
        silence = ABSENT
    elif cell["came_back"]:
        silence = f"{seconds:.2f} s"
    else:
        silence = "end"
    return f"{mark}{orders['lost']:,} of {orders['sent']:,}, {silence}"


def _details(record: Record) -> FoldingTable:
    table = plain_table(
        key_column("fault"),
        key_column("over"),
        *COUNTS,
        *(f"p99\n{phase}" for phase in PHASES),
        "exit",
        words_column("what the run said"),
    )
    for cell in record["cells"]:
        table.add_row(cell["fault"], cell["over"], *_detail_cells(cell))
    return table


def _detail_cells(cell: Record) -> list[str]:
    """Return the cells of a row of details, behind fault and transport."""
    if "skipped" in cell:
        figures = [""] * (len(COUNTS) + len(PHASES) + 1)
        return [*figures, f"skipped: {cell['skipped']}"]
    figures = [whole_number(cell["orders"][name]) for name in COUNTS]
    for phase in PHASES:
        p99_us = cell["p99_us"].get(phase)
        figures.append(ABSENT if p99_us is None else time_in_words(p99_us))
    return [*figures, whole_number(cell["exit_code"]), cell["said"]]
