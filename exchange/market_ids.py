"""Ids of a market of several gateways: each gateway numbers its own orders, and the engine adds the gateway's number.

A gateway's order n has the id n on its own link, with one gateway as with many. Within the engine, and in its recorded
input, the order has a market id:

    market id = gateway << 27 | n

So one number names an order of any gateway, and says to whom its answers go. A record's own id is always a gateway's
own number. A request may name an order by its market id too, but only orders of its own gateway.
"""

from __future__ import annotations

NUMBER_BITS = 27
HIGHEST_NUMBER = (1 << NUMBER_BITS) - 1
"""The highest number of a gateway's order, and so the most orders of each of several gateways."""
OPENING_GATEWAY = 31
"""Stands before the ids of orders that are in the book before a run (--opening). Gateways have lower numbers."""
LEAST_OPENING_ID = OPENING_GATEWAY << NUMBER_BITS
"""The ids of a run's own orders are lower."""


def market_id(gateway: int, number: int) -> int:
    """Return the id that a gateway's order has in the market."""
    return gateway << NUMBER_BITS | number


def gateway_of(order_id: int) -> int:
    """Return the gateway whose order has this market id; 0 for a gateway's own number."""
    return order_id >> NUMBER_BITS


def number_of(order_id: int) -> int:
    """Return the number that the order of this market id has at its gateway."""
    return order_id & HIGHEST_NUMBER
