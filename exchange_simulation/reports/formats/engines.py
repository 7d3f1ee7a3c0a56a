"""What each of several engines did: a row for each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from exchange.json_records import Record


@dataclass(frozen=True)
class EngineRow:
    """One of several engines of a market. A number that was not measured is None."""

    title: str
    """The engine's number."""
    orders: int | None
    share: float | None
    """Its part of the orders that all engines took."""
    answers: int | None
    cpu_s: float | None


def engine_rows(engines: Sequence[Record]) -> list[EngineRow]:
    """Return the rows for the entries of run.json's `engines`."""
    rows = []
    for entry in engines:
        row = EngineRow(
            title=str(entry["engine"]),
            orders=(entry.get("orders") or {}).get("messages"),
            share=entry.get("share"),
            answers=(entry.get("answers") or {}).get("messages"),
            cpu_s=entry.get("cpu_s"),
        )
        rows.append(row)
    return rows
