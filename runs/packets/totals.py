"""All packets of a run's orders and answers together, as table 1 counts what goes to and from the broker."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from exchange.instances import role_of
from runs.packets.rows import PacketRow, packet_rows, total

WHO_TALKS = ("gateway", "engine")


def exchange_total(record: Mapping[str, Any]) -> PacketRow | None:
    """On the connections of gateway and engine, both directions; None where nothing was counted."""
    ends = [end for end in record.get("sockets") or () if role_of(str(end.get("component"))) in WHO_TALKS]
    rows = packet_rows({**record, "sockets": ends})
    return total(rows) if rows else None
