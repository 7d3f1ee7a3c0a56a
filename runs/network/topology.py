"""Who sits where: addresses, and the lines of `ip -batch` that make and join the interfaces.

A role has an interface `reports`, and one called `orders` if its link is shaped; the other ends, r0, r1 .. and
o0, o1 .., are in the hub, where `reports` is a bridge. Neighbours are written down on both sides, so that no ARP
crosses a slow link.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

ORDERS, REPORTS = 1, 2
NET = "10.77"


@dataclass(frozen=True)
class Seat:
    """Of a role: `index` is its place on both networks, and its port in the wire."""

    role: str
    index: int
    is_shaped: bool

    @property
    def address(self) -> str:
        """Where the others reach it."""
        return self.on(ORDERS if self.is_shaped else REPORTS)

    def on(self, lan: int) -> str:
        return f"{NET}.{lan}.{self.index + 1}"

    def mac(self, lan: int) -> str:
        """A locally administered address whose last bytes are the network and the place."""
        return f"02:00:00:00:{lan:02x}:{self.index:02x}"


def seats(roles: list[str], unshaped: list[str]) -> list[Seat]:
    """Those with a shaped link first, so that the ports of the wire are 0, 1, .."""
    in_order = sorted(roles, key=lambda role: role in unshaped)
    return [Seat(role, index, role not in unshaped) for index, role in enumerate(in_order)]


def hub_lines(table: list[Seat], paths: dict[str, str], bridged: bool) -> Iterator[str]:
    """In the hub; `paths` are the roles' namespaces. What is not bridged is left to the wire."""
    yield "link set lo up"
    for bridge in ("reports", "orders") if bridged else ("reports",):
        yield f"link add {bridge} type bridge"
        yield f"link set {bridge} up"
    for seat in table:
        yield from _pair(seat, f"r{seat.index}", "reports", REPORTS, paths[seat.role])
        yield f"link set r{seat.index} master reports up"
        if seat.is_shaped:
            yield from _pair(seat, f"o{seat.index}", "orders", ORDERS, paths[seat.role])
            yield f"link set o{seat.index} {'master orders' if bridged else ''} up"


def _pair(seat: Seat, here: str, there: str, lan: int, path: str) -> Iterator[str]:
    yield f"link add {here} type veth peer name {there} address {seat.mac(lan)} netns {path}"


def role_lines(seat: Seat, table: list[Seat]) -> Iterator[str]:
    """In the role's namespace."""
    yield "link set lo up"
    for lan, name in ((ORDERS, "orders"), (REPORTS, "reports")):
        if lan == REPORTS or seat.is_shaped:
            yield f"addr add {seat.on(lan)}/24 dev {name}"
            yield f"link set {name} up"
            yield from _neighbours(seat, table, lan, name)
    if not seat.is_shaped:  # it reaches the address that everybody uses, by its own link
        yield from (f"route add {other.on(ORDERS)}/32 via {other.on(REPORTS)}" for other in table if other.is_shaped)


def _neighbours(seat: Seat, table: list[Seat], lan: int, name: str) -> Iterator[str]:
    for other in table:
        if other is not seat and (lan == REPORTS or other.is_shaped):
            yield f"neigh add {other.on(lan)} lladdr {other.mac(lan)} dev {name} nud permanent"
