"""Table 1 of the paper, from a run's record: packets, their mean size and the mean time between two of them.

The counters are the kernel's at the ends of each connection, as differences over the run. A size is TCP payload. Pure
acknowledgements are packets, too. A full segment counts as one, even if several leave in one piece.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from exchange.instances import role_of
from transports.registry import has_broker

ALL = "all"
HEADERS_BYTES = {4: 20 + 32, 6: 40 + 32}
"""Bytes of the headers of IP and of TCP with time stamps, which Linux sends by default, by IP version."""
EXCHANGE_ROLES = ("gateway", "engine")
"""The roles whose connections carry orders and answers."""

Socket = Mapping[str, Any]


@dataclass(frozen=True)
class PacketRow:
    """One direction of one connection, or all of them together.

    source, destination   addresses, as 127.0.0.1:4711
    bytes, mean_bytes     TCP payload; mean_bytes is None without packets
    mean_gap_us           the run's duration over the packets; None without packets
    per_order             packets for each order sent
    retransmits           the sender's, as tcp_nodelay; both None if the sender is no component of ours
    orders_per_s          offered load; None without a schedule
    """

    sender: str
    receiver: str
    source: str
    destination: str
    segments: int
    bytes: int
    mean_bytes: float | None
    mean_gap_us: float | None
    per_order: float | None
    retransmits: int | None
    tcp_nodelay: bool | None
    orders_per_s: float | None

    @property
    def mean_wire_bytes(self) -> float | None:
        """The mean size with the headers of IP and TCP; only for the row of a connection."""
        headers = HEADERS_BYTES[6 if self.source.startswith("[") else 4]
        return None if self.mean_bytes is None or not self.source else self.mean_bytes + headers


def packet_rows(record: Mapping[str, Any]) -> list[PacketRow]:
    """Each direction of each connection once, from run.json's content; counted by the sender, if that is ours."""
    ends = {(end["local"], end["peer"]): end for end in record.get("sockets") or () if _counted(end)}
    return [row for end in ends.values() for row in _directions(record, end, ends.get((end["peer"], end["local"])))]


def total(rows: Sequence[PacketRow]) -> PacketRow:
    """The sum of one run's rows, as the paper counts packets to and from its broker."""
    segments, sent = sum(row.segments for row in rows), sum(row.bytes for row in rows)
    kinds = {row.tcp_nodelay for row in rows}
    gaps_per_us = sum(1 / row.mean_gap_us for row in rows if row.mean_gap_us)
    return PacketRow(
        sender=ALL,
        receiver="",
        source="",
        destination="",
        segments=segments,
        bytes=sent,
        mean_bytes=_ratio(sent, segments),
        mean_gap_us=_ratio(1, gaps_per_us),
        per_order=sum(row.per_order or 0.0 for row in rows),
        retransmits=sum(row.retransmits or 0 for row in rows),
        tcp_nodelay=kinds.pop() if len(kinds) == 1 else None,
        orders_per_s=rows[0].orders_per_s if rows else None,
    )


def exchange_total(record: Mapping[str, Any]) -> PacketRow | None:
    """All packets of orders and answers, in both directions; None if nothing was counted."""
    ends = [end for end in record.get("sockets") or () if role_of(str(end.get("component"))) in EXCHANGE_ROLES]
    rows = packet_rows({**record, "sockets": ends})
    return total(rows) if rows else None


def _counted(end: Socket) -> bool:
    """True if the system has counters."""
    return all(isinstance(end.get(name), int) for name in ("segments_out", "bytes_out", "segments_in", "bytes_in"))


def _directions(record: Mapping[str, Any], end: Socket, far: Socket | None) -> Iterator[PacketRow]:
    """The direction that `end` sent, and the one it received unless the far end counts that."""
    other = far["component"] if far else _stranger(record)
    yield _row(record, (end["component"], other), (end["local"], end["peer"]), (end, "out"))
    if far is None:
        yield _row(record, (other, end["component"]), (end["peer"], end["local"]), (end, "in"))


def _stranger(record: Mapping[str, Any]) -> str:
    """The name of the other end of a connection, if it is none of our components."""
    is_broker = "broker" in record or has_broker(str(record.get("settings", {}).get("transport", "")))
    return "broker" if is_broker else "unknown"


def _row(
    record: Mapping[str, Any], names: tuple[str, str], addresses: tuple[str, str], counted: tuple[Socket, str]
) -> PacketRow:
    end, way = counted
    segments, payload = end[f"segments_{way}"], end[f"bytes_{way}"]
    duration_s, orders = record.get("duration_s"), record.get("counts", {}).get("orders_sent")
    return PacketRow(
        *names,
        *addresses,
        segments=segments,
        bytes=payload,
        mean_bytes=_ratio(payload, segments),
        mean_gap_us=_ratio(duration_s and duration_s * 1e6, segments),
        per_order=_ratio(segments, orders),
        retransmits=end.get("retransmits") if way == "out" else None,
        tcp_nodelay=end.get("tcp_nodelay") if way == "out" else None,
        orders_per_s=record.get("settings", {}).get("orders_per_s"),
    )


def _ratio(part: float | None, whole: float | None) -> float | None:
    return part / whole if part is not None and whole else None
