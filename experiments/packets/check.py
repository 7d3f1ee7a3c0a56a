"""tcpdump's counts against the kernel's: whether what was counted is what was on the wire."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiments.packets.headers import BadCapture
from experiments.packets.pcap import Direction, Traffic, counts
from experiments.packets.table import PacketRow, packet_rows

NOTHING = Traffic(segments=0, payload_bytes=0, wire_bytes=0, first_ns=0, last_ns=0)


@dataclass(frozen=True)
class Disagreement:
    """Shares, 0 to 1, of the larger of both figures; the gap's is of the run's and of the capture's own length.

    A capture also has what a run's counters leave out, handshakes and goodbyes, so a short run disagrees more.
    Segments disagree too where more than one leaves in one piece, which a capture counts once.
    """

    segments: float
    payload_bytes: float
    mean_gap: float

    @property
    def worst(self) -> float:
        """Of what is counted; a gap is only as good as the two ends of the time that it is taken over."""
        return max(self.segments, self.payload_bytes)


def disagreement(rows: Sequence[PacketRow], traffic: Mapping[Direction, Traffic]) -> dict[Direction, Disagreement]:
    """Of every row of a connection (not of a total); what was captured of others is nobody's."""
    return {
        (row.source, row.destination): _of(row, traffic.get((row.source, row.destination), NOTHING))
        for row in rows
        if row.source
    }


def held_against(record: Mapping[str, Any], capture: Path, said: Mapping[str, int]) -> dict[str, Any]:
    """run.json's `capture`: both counts of each direction that was captured, and what tcpdump `said` of its packets."""
    seen, problem = _read(capture)
    rows = [row for row in packet_rows(record) if (row.source, row.destination) in seen]
    directions = [_both(row, seen[row.source, row.destination]) for row in rows]
    off_by = {kind: _off_by(directions, kind) for kind in ("segments", "bytes")}
    return {"file": capture.name, **said, "problem": problem, "off_by": off_by, "directions": directions}


def _off_by(directions: Sequence[Mapping[str, Any]], kind: str) -> float | None:
    """Of all directions together: a share, 0 to 1."""
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


def _of(row: PacketRow, seen: Traffic) -> Disagreement:
    return Disagreement(
        segments=_share(row.segments, seen.segments),
        payload_bytes=_share(row.bytes, seen.payload_bytes),
        mean_gap=_share(row.mean_gap_us or 0.0, mean_gap_us(seen)),
    )


def mean_gap_us(seen: Traffic) -> float:
    """Between one packet and the next, by their own time stamps; 0 where there are fewer than two."""
    return (seen.last_ns - seen.first_ns) / 1e3 / (seen.segments - 1) if seen.segments > 1 else 0.0


def _share(one: float, other: float) -> float:
    return abs(one - other) / max(one, other) if one != other else 0.0
