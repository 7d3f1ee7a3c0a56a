"""What a captured run says: table 1 of its connections, and whether tcpdump saw the same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from reports.rounding import ABSENT, number
from runs.packets.rows import ALL, PacketRow, packet_rows

COLUMNS = 100
TITLES = ("orders/s", "packets", "mean\nbytes", "with\nheaders", "mean\ngap us", "per\norder", "resent")


def show_capture(record: dict[str, Any]) -> None:
    """From run.json's content."""
    captured = {(each["source"], each["destination"]) for each in record["capture"]["directions"]}
    if rows := [row for row in packet_rows(record) if (row.source, row.destination) in captured]:
        show(rows)
    for line in sentences(record["capture"]):
        click.echo(line)


def sentences(capture: dict[str, Any]) -> Iterator[str]:
    for each in capture["directions"]:
        segments = f"{each['segments_captured']:,} segments, kernel {each['segments']:,}"
        payload = f"{each['bytes_captured']:,} bytes, {each['bytes']:,}"
        yield f"tcpdump, {each['from']} to {each['to']}: {segments}; {payload}"
    if capture["directions"]:
        off = capture["off_by"]
        yield f"off by {off['segments']:.3%} and {off['bytes']:.3%}; tcpdump saw the handshakes, too"
    if capture["problem"]:
        yield f"the capture cannot be read: {capture['problem']}"
    elif not capture["directions"]:
        yield "tcpdump saw none of the run's connections"
    if capture["dropped"]:
        yield f"tcpdump lost {capture['dropped']:,} packets: what it counted is too little"


def show(rows: Sequence[PacketRow]) -> None:
    Console(width=COLUMNS, highlight=False).print(table(rows))


def table(rows: Sequence[PacketRow]) -> Table:
    """In the paper's layout, with who sends to whom in front; 100 columns."""
    made = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for title in ("from", "to", "Nagle"):
        made.add_column(title, no_wrap=True)
    for title in TITLES:
        made.add_column(title, justify="right", no_wrap=True)
    for row in rows:
        made.add_row(*_cells(row), style="bold" if row.sender == ALL else None)
    return made


def _cells(row: PacketRow) -> Iterator[str]:
    yield from (row.sender, row.receiver)
    yield {True: "without", False: "with", None: ABSENT}[row.tcp_nodelay]
    yield "max" if row.orders_per_s is None else f"{row.orders_per_s:,.10g}"
    yield f"{row.segments:,}"
    for mean in (row.mean_bytes, row.mean_wire_bytes, row.mean_gap_us, row.per_order):
        yield ABSENT if mean is None else number(mean)
    yield ABSENT if row.retransmits is None else f"{row.retransmits:,}"
