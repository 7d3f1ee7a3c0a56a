"""Whether the launcher has room for every cell: asked before the first one starts."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from exchange.words import counted
from messaging.benchmark import Benchmark, Cell
from messaging.descriptors import check_descriptors
from messaging.places import Places
from messaging.words import cell_in_words
from transports.registry import scheme_of


def check_cells(benchmark: Benchmark, cells: Iterable[Cell]) -> None:
    """The launcher's own: a pipe to each role, and the ports that it keeps free for them. UserError."""
    for cell in cells:
        ports: list[str] = []
        roles = len(benchmark.roles(cell, _imagined(cell.transport, ports)))
        who = " and ".join([counted(roles, "roles"), *[counted(len(ports), "ports")] * bool(ports)])
        check_descriptors(roles + len(ports), f"{cell_in_words(cell)}: {who} need a descriptor each")


def _imagined(transport: str, ports: list[str]) -> Places:
    """Where nothing is reserved, but put down in `ports`."""

    def find(kind: str, _path: Path) -> str:
        ports.extend([kind] * (kind == "port"))
        return "127.0.0.1:0"

    url = transport if "://" in transport else f"{scheme_of(transport)}://imagined"
    return Places(url, "imagined", Path(), find)
