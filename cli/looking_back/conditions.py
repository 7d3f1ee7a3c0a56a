"""Under which conditions a run was made, in a few lines of 78 columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import Console
from rich.table import Table

from exchange.json_records import Record
from exchange.settings import RunSettings
from reports.formats import condition, plain
from reports.run.terminal import COLUMNS

ELSEWHERE = {"transport", "orders_per_s", "orders", "seed", "url", "network"}
"""Settings that the headline, the counts, or a line of their own tell."""


def show_conditions(record: Record) -> None:
    grid = Table.grid(padding=(0, 2, 0, 0))
    for title, told in _lines(record):
        grid.add_row(title, told)
    Console(width=COLUMNS, highlight=False, markup=False).print(grid)


def _lines(record: Record) -> Iterator[tuple[str, str]]:
    """(title, words); a record that holds nothing of a part has no line for it."""
    if record.get("started_at"):
        yield "started", record["started_at"]
    settings = record.get("settings") or {}
    yield "settings", _unlike_default(settings) if "transport" in settings else "not known"
    if host := record.get("host"):
        yield "host", _words(host)
    if versions := record.get("versions"):
        yield "versions", _words(versions)
    if sockets := record.get("sockets"):
        yield "TCP_NODELAY", ", ".join(_nodelay(sockets))
    yield "network", _network(record)


def _unlike_default(settings: Mapping[str, Any]) -> str:
    default = RunSettings().as_dict()
    own = {n: v for n, v in settings.items() if n not in ELSEWHERE and (n not in default or v != default[n])}
    return _words(own) if own else "the defaults"


def _words(facts: Mapping[str, Any]) -> str:
    return ", ".join(" ".join(condition(name, value)) for name, value in facts.items())


def _nodelay(sockets: list[dict[str, Any]]) -> Iterator[str]:
    """As it was read back, end by end."""
    for component in dict.fromkeys(socket["component"] for socket in sockets):
        found = {socket["tcp_nodelay"] for socket in sockets if socket["component"] == component}
        yield f"{component} {'on' if found == {True} else 'off' if found == {False} else 'on and off'}"


def _network(record: Record) -> str:
    """What joined the components, and how that was made."""
    network = record.get("network")
    if not network:
        asked = (record.get("settings") or {}).get("network")
        return "none emulated" if asked in {None, "local"} else f"{asked}, which left no facts"
    told = {name: network.get(name) for name in ("mechanism", "rate_bit_per_s", "delay_us")}
    return f"{network['profile']}: {', '.join(f'{n} {plain(v)}' for n, v in told.items() if v is not None)}"
