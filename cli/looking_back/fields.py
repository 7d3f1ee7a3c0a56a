"""In which fields two records differ."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from exchange.json_records import Record

ABSENT = "absent"


def differing(first: Mapping[str, Any], second: Mapping[str, Any], prefix: str = "") -> Iterator[Record]:
    """field, first, second of each that is not the same; a value that is absent is left out."""
    for name in dict.fromkeys((*first, *second)):
        values = {side: part[name] for side, part in (("first", first), ("second", second)) if name in part}
        if len(values) == 1 or values["first"] != values["second"]:
            yield {"field": f"{prefix}{name}", **values}


def part_of(record: Record, part: str, names: Iterable[str] | None = None) -> dict[str, Any]:
    """Some fields of a part, or all; none where the record has no such part."""
    found = record.get(part)
    known = found if isinstance(found, dict) else {}
    return {name: value for name, value in known.items() if names is None or name in names}
