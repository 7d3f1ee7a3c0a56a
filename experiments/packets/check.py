"""tcpdump's counts against the kernel's: whether what was counted is what was on the wire."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from experiments.packets.pcap import Direction, Traffic
from experiments.packets.table import PacketRow

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
