"""A fault matrix in the terminal: the answer, a row for each fault, a column for each transport, the details."""

from __future__ import annotations

from rich.text import Text

from exchange.json_records import Record
from exchange.words import counted
from exchange_simulation.reports.formats import ABSENT, time_in_words, whole
from exchange_simulation.reports.tables import FoldingTable, figure, indented, key, plain_table, terminal, words

PHASES = ("before", "during", "after")
LEGEND = (
    "A cell: orders lost of those sent, and how long nothing was answered (end: to the end of the run). "
    "! marks orders that are missing from the record, and runs that hung."
)


def measured(record: Record) -> list[Record]:
    """The cells that were run."""
    return [cell for cell in record["cells"] if "skipped" not in cell]


def is_unreported(cell: Record) -> bool:
    """Whether the run left orders whose fate its record does not tell, or did not end."""
    return bool(cell["hangs"] or cell["orders"]["unreported"])


def fails(record: Record) -> bool:
    """Whether the matrix found a loss that nobody was told of, is not whole, or could try no fault."""
    cells = measured(record)
    return record["status"] != "complete" or not cells or any(map(is_unreported, cells))


def columns_of(record: Record) -> list[str]:
    return list(dict.fromkeys(cell["over"] for cell in record["cells"]))


def cell_of(record: Record, fault: str, over: str) -> Record | None:
    return next((cell for cell in record["cells"] if (cell["fault"], cell["over"]) == (fault, over)), None)


def answer(record: Record) -> list[str]:
    """The answer first: how many orders were lost, and whether the records count them; then a sentence a transport."""
    cells = measured(record)
    lost = sum(cell["orders"]["lost"] for cell in cells)
    where = sum(bool(cell["orders"]["lost"]) for cell in cells)
    planned = "" if record["status"] == "complete" else f" (of {record['planned_cells']} planned)"
    skipped = len(record["cells"]) - len(cells)
    head = f"{counted(lost, 'orders') if lost else 'no order'} {'were' if lost > 1 else 'was'} lost"
    head = f"{head} in {where or 'any'} of {counted(len(cells), 'runs')}" if cells else "no fault could be tried"
    head += f"{planned}{_silent(cells) or (', all counted in the records' if lost else '')}"
    head += f"; {skipped} not possible here" if skipped else ""
    return [head, *(_over(over, [cell for cell in cells if cell["over"] == over]) for over in columns_of(record))]


def _silent(cells: list[Record]) -> str:
    """What records do not tell, and the runs that hung."""
    untold = sum(cell["orders"]["unreported"] for cell in cells)
    hung = sum(cell["hangs"] for cell in cells)
    missing = f": {counted(untold, 'orders')} MISSING FROM THE RECORDS" if untold else ""
    return missing + (f"; {counted(hung, 'runs')} hung" if hung else "")


def _over(over: str, cells: list[Record]) -> str:
    """over zeromq, 11 of 15 faults cost orders; the exchange answered again after 5 of them"""
    if not cells:
        return f"over {over}, no fault could be tried: the details say why"
    harmful = sum(bool(cell["orders"]["lost"]) for cell in cells)
    back = sum(cell["came_back"] for cell in cells)
    doubled = sum(bool(cell["orders"]["doubled"] or cell["orders"]["reordered"]) for cell in cells)
    more = f"; {counted(doubled, 'runs')} doubled or reordered orders" if doubled else ""
    cost = f"{harmful or 'none'} of {counted(len(cells), 'faults')} cost orders"
    return f"over {over}, {cost}; the exchange answered again after {back or 'none'} of {len(cells)}{more}"


def show(record: Record, in_full: bool = True) -> None:
    """Print faults.json's content; unless in full, without the details of each cell."""
    console = terminal()
    head, *others = answer(record)
    console.print(head, style="bold", markup=False)
    for line in others:
        console.print(indented(line))
    console.print()
    console.print(_matrix(record))
    console.print(LEGEND, style="dim", markup=False)
    if in_full:
        console.print()
        console.print(_details(record))


def _matrix(record: Record) -> FoldingTable:
    overs = columns_of(record)
    table = plain_table(key("fault"), *(figure(over) for over in overs))
    for fault in record["faults"]:
        table.add_row(fault, *(Text(in_short(cell_of(record, fault, over))) for over in overs))
    return table


def in_short(cell: Record | None) -> str:
    """12 of 6,000, 1.52 s; "end" in place of the seconds where no answer came any more."""
    if cell is None:
        return ABSENT
    if "skipped" in cell:
        return "not possible here"
    orders = cell["orders"]
    mark = "! " if is_unreported(cell) else ""
    seconds = cell["without_service_s"]
    silence = ABSENT if seconds is None else f"{seconds:.2f} s" if cell["came_back"] else "end"
    return f"{mark}{orders['lost']:,} of {orders['sent']:,}, {silence}"


def _details(record: Record) -> FoldingTable:
    table = plain_table(
        key("fault"),
        key("over"),
        "doubled",
        "reordered",
        "unreported",
        *(f"p99\n{phase}" for phase in PHASES),
        "exit",
        words("what the run said"),
    )
    for cell in record["cells"]:
        table.add_row(cell["fault"], cell["over"], *_detail(cell))
    return table


def _detail(cell: Record) -> list[str]:
    if "skipped" in cell:
        return [*[""] * 7, f"skipped: {cell['skipped']}"]
    counts = (whole(cell["orders"][name]) for name in ("doubled", "reordered", "unreported"))
    p99_us = (cell["p99_us"].get(phase) for phase in PHASES)
    times = (ABSENT if us is None else time_in_words(us) for us in p99_us)
    return [*counts, *times, whole(cell["exit_code"]), cell["said"]]
