"""tcpdump's counts against the kernel's: whether what was counted is what was on the wire."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from runs.packets.headers import BadCapture
from runs.packets.pcap import Direction, Traffic, counts
from runs.packets.rows import PacketRow, packet_rows


def held_against(record: Mapping[str, Any], capture: Path, said: Mapping[str, int]) -> dict[str, Any]:
    """run.json's `capture`: both counts of each direction that was captured, and what tcpdump `said` of its packets.

    `off_by` is a share, 0 to 1, of the larger count. A capture also has what a run's counters leave out, handshakes and
    goodbyes, so a short run is off by more; and segments that leave in one piece are captured as one.
    """
    seen, problem = _read(capture)
    rows = [row for row in packet_rows(record) if (row.source, row.destination) in seen]
    directions = [_both(row, seen[row.source, row.destination]) for row in rows]
    off_by = {kind: _off_by(directions, kind) for kind in ("segments", "bytes")}
    return {"file": capture.name, **said, "problem": problem, "off_by": off_by, "directions": directions}


def _off_by(directions: Sequence[Mapping[str, Any]], kind: str) -> float | None:
    """Of all directions together; None where nothing was captured."""
    one, other = (sum(each[name] for each in directions) for name in (kind, f"{kind}_captured"))
    return _share(one, other) if directions else None


def _read(capture: Path) -> tuple[dict[Direction, Traffic], str | None]:
    try:
        return counts(capture), None
    except (BadCapture, OSError) as error:
        return {}, str(error)


def _both(row: PacketRow, seen: Traffic) -> dict[str, Any]:
    return {
        "from": row.sender,
        "to": row.receiver,
        "source": row.source,
        "destination": row.destination,
        "segments": row.segments,
        "segments_captured": seen.segments,
        "bytes": row.bytes,
        "bytes_captured": seen.payload_bytes,
    }


def _share(one: float, other: float) -> float:
    return abs(one - other) / max(one, other) if one != other else 0.0
