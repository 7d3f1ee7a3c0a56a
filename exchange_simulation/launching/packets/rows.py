"""Table 1 of the paper, from a run's record: packets, their mean size, and the mean time between two packets.

The counters are those of the kernel at the ends of each connection, as differences over the run. Sizes are TCP payload.
Pure acknowledgements count as packets. Each full segment counts, even if several leave the kernel in one piece.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from exchange.instances import role_of
from transports.registry import has_broker

HEADERS_BYTES = {4: 20 + 32, 6: 40 + 32}
"""By IP version, the bytes of the headers of IP and of TCP with time stamps, which Linux sends by default."""
EXCHANGE_ROLES = ("gateway", "engine")
"""The roles whose connections carry orders and answers."""

Socket = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Packets:
    """Packets of a run; `bytes` are TCP payload. A mean is None without packets, or if the record lacks a part."""

    segments: int
    bytes: int
    duration_s: float | None
    orders_sent: int | None

    @property
    def mean_bytes(self) -> float | None:
        return _ratio(self.bytes, self.segments)

    @property
    def mean_gap_us(self) -> float | None:
        """The mean time between two packets."""
        duration_us = None if self.duration_s is None else self.duration_s * 1e6
        return _ratio(duration_us, self.segments)

    @property
    def per_order(self) -> float | None:
        return _ratio(self.segments, self.orders_sent)


@dataclass(frozen=True, kw_only=True)
class PacketRow(Packets):
    """One direction of one connection.

    source, destination   addresses, as 127.0.0.1:4711
    retransmits           of the sender; None if the sender is no component of the run
    tcp_nodelay           of the sender; None if the sender is no component of the run
    orders_per_s          offered load; None without a schedule
    """

    sender: str
    receiver: str
    source: str
    destination: str
    retransmits: int | None
    tcp_nodelay: bool | None
    orders_per_s: float | None

    @property
    def mean_wire_bytes(self) -> float | None:
        """The mean size with the headers of IP and TCP."""
        headers = HEADERS_BYTES[6 if self.source.startswith("[") else 4]
        return None if self.mean_bytes is None else self.mean_bytes + headers


def packet_rows(record: Mapping[str, Any]) -> list[PacketRow]:
    """Return a row for each direction of each connection, from run.json's content.

    The counts are the sender's, or the receiver's if the sender is no component of the run.
    """
    ends = {(end["local"], end["peer"]): end for end in record.get("sockets") or () if _has_counters(end)}
    rows: list[PacketRow] = []
    for end in ends.values():
        far_end = ends.get((end["peer"], end["local"]))
        rows += _directions(record, end, far_end)
    return rows


def exchange_total(record: Mapping[str, Any]) -> Packets | None:
    """Return the sum over all packets of orders and answers, as the paper counts packets to and from its broker.

    None if no connection has counters.
    """
    ends = [end for end in record.get("sockets") or () if role_of(str(end.get("component"))) in EXCHANGE_ROLES]
    rows = packet_rows({**record, "sockets": ends})
    segments = sum(row.segments for row in rows)
    payload = sum(row.bytes for row in rows)
    if not rows:
        return None
    return Packets(segments=segments, bytes=payload, **_duration_and_orders(record))


def _duration_and_orders(record: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of Packets that are the same for all packets of a run."""
    return {"duration_s": record.get("duration_s"), "orders_sent": record.get("counts", {}).get("orders_sent")}


def _has_counters(end: Socket) -> bool:
    """True if the system that recorded the socket has counters of packets."""
    return all(isinstance(end.get(name), int) for name in ("segments_out", "bytes_out", "segments_in", "bytes_in"))


def _directions(record: Mapping[str, Any], end: Socket, far: Socket | None) -> Iterator[PacketRow]:
    """Yield the direction in which `end` sent. Without counters of the far end, also yield the other direction."""
    other = far["component"] if far else _name_of_unrecorded_end(record)
    yield _row(record, end, "out", end["component"], other)
    if far is None:
        yield _row(record, end, "in", other, end["component"])


def _name_of_unrecorded_end(record: Mapping[str, Any]) -> str:
    """Return the name for the other end of a connection, if that is no component of the run."""
    is_broker = "broker" in record or has_broker(str(record.get("settings", {}).get("transport", "")))
    return "broker" if is_broker else "unknown"


def _row(record: Mapping[str, Any], end: Socket, way: str, sender: str, receiver: str) -> PacketRow:
    """Return the row of one direction from the counters of `end`. `way` is `out` if it sent the packets, else `in`."""
    is_sender = way == "out"
    return PacketRow(
        sender=sender,
        receiver=receiver,
        source=end["local" if is_sender else "peer"],
        destination=end["peer" if is_sender else "local"],
        segments=end[f"segments_{way}"],
        bytes=end[f"bytes_{way}"],
        retransmits=end.get("retransmits") if is_sender else None,
        tcp_nodelay=end.get("tcp_nodelay") if is_sender else None,
        orders_per_s=record.get("settings", {}).get("orders_per_s"),
        **_duration_and_orders(record),
    )


def _ratio(part: float | None, whole: float | None) -> float | None:
    """Return `part` / `whole`; None if one of them is None, or `whole` is 0."""
    if part is None or not whole:
        return None
    return part / whole
