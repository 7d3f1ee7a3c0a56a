"""Records with chosen counts of packets, as run.json has them."""

from __future__ import annotations

from typing import Any

GATEWAY = "127.0.0.1:1001"
ENGINE = "127.0.0.1:1002"
BROKER = "127.0.0.1:5672"


def end(component: str, local: str, peer: str, **counted: Any) -> dict[str, Any]:
    """One end of a connection; 100 segments of 50 bytes out and 200 of 25 in, unless told otherwise."""
    usual = {"tcp_nodelay": True, "segments_out": 100, "bytes_out": 5_000, "segments_in": 200, "bytes_in": 5_000}
    return {"component": component, "local": local, "peer": peer, **usual, "retransmits": 0, **counted}


def record(*sockets: dict[str, Any], transport: str = "tcp", **changed: Any) -> dict[str, Any]:
    """100 orders in two seconds."""
    return {
        "settings": {"transport": transport, "orders_per_s": 50.0},
        "counts": {"orders_sent": 100},
        "duration_s": 2.0,
        "sockets": list(sockets),
        **changed,
    }


def duplex(**of_gateway: Any) -> dict[str, Any]:
    """Both ends of one connection."""
    return record(
        end("gateway", GATEWAY, ENGINE, **of_gateway),
        end("engine", ENGINE, GATEWAY, segments_out=200, bytes_out=20_000, tcp_nodelay=False, retransmits=3),
    )


def over_a_broker() -> dict[str, Any]:
    return record(
        end("gateway", GATEWAY, BROKER, retransmits=2),
        end("engine", ENGINE, BROKER, segments_in=400, bytes_in=80_000),
        transport="amqp",
    )
