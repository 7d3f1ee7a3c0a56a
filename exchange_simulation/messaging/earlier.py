"""What an interrupted benchmark measured, from its bench.json, so that it goes on in the middle of its repeats."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from exchange.json_records import Record
from exchange_simulation.messaging.benchmark import BenchmarkDefinition
from exchange_simulation.messaging.cell import Cell
from exchange_simulation.messaging.measuring import LOST_ROLE, PARTIAL
from exchange_simulation.messaging.options import settings_again
from exchange_simulation.messaging.point import Settings


def can_go_on(record: Mapping[str, Any], benchmark: BenchmarkDefinition, settings: Settings) -> bool:
    """True if the record is of this benchmark with these settings, and was interrupted."""
    if record["status"] != PARTIAL or record["benchmark"] != benchmark.name:
        return False
    return _as_json(dict(settings_again(record, benchmark))) == _as_json(dict(settings))


def earlier_tries(record: Mapping[str, Any], cells: Sequence[Cell]) -> list[list[Record]]:
    """Return the tries of each cell, in the order of their repeats; a try that lost a role is left out.

    Tries that were set aside for noise come before the try of their repeat that counts.
    """
    tries_by_cell: dict[str, list[Record]] = {}
    for row in record["rows"]:
        tries = [*row["set_aside"], *row["repeats"]]
        tries_by_cell[_key(row["transport"], row["point"])] = sorted(tries, key=lambda attempt: int(attempt["repeat"]))
    tries_of_cells = []
    for cell in cells:
        tries = tries_by_cell.get(_key(cell.transport, cell.point), [])
        tries_of_cells.append([attempt for attempt in tries if attempt["status"] != LOST_ROLE])
    return tries_of_cells


def _key(transport: str, point: Mapping[str, Any]) -> str:
    return _as_json([transport, dict(point)])


def _as_json(value: object) -> str:
    return json.dumps(value, sort_keys=True)
