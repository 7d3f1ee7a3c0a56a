"""What a captured run says: table 1 of its connections, and whether tcpdump saw the same."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

from experiments.packets.table import packet_rows, show


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
