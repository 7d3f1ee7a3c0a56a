"""The plan of a network: the seats and addresses of its roles, and the lines of `ip -batch` that make its interfaces.

A role has an interface `reports`, and if its link is shaped, an interface `orders`. The other ends of these links,
r0, r1 .. and o0, o1 .., are in the hub, where `reports` is a bridge. Neighbours are set on both sides, so that no ARP
crosses a slow link.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

NET = "10.77"
"""The beginning of the addresses of both networks."""

# The third number of the addresses of a network.
ORDERS = 1
REPORTS = 2


@dataclass(frozen=True)
class Seat:
    """A role's place: `index` is its port in the wire, and `index` + 1 its host number on both networks."""

    role: str
    index: int
    is_shaped: bool

    @property
    def address(self) -> str:
        """The address at which the other roles reach this one."""
        return self.on(ORDERS if self.is_shaped else REPORTS)

    def on(self, lan: int) -> str:
        """Return the address on one of the two networks."""
        return f"{NET}.{lan}.{self.index + 1}"

    def mac(self, lan: int) -> str:
        """Return the MAC address, which is locally administered. Its last two bytes are the network and the index."""
        return f"02:00:00:00:{lan:02x}:{self.index:02x}"


@dataclass(frozen=True)
class NetworkPlan:
    """The network that the holder makes."""

    roles: list[str]
    unshaped: list[str]
    """Roles whose link has no rate and no delay."""
    mechanism: str
    """veth, netem or wire."""
    rate_bit_per_s: int | None
    delay_us: float | None

    @property
    def seats(self) -> list[Seat]:
        """The roles' seats, shaped roles first, so that the ports of the wire are 0, 1, .."""
        shaped_roles = [role for role in self.roles if role not in self.unshaped]
        unshaped_roles = [role for role in self.roles if role in self.unshaped]
        seats = []
        for index, role in enumerate([*shaped_roles, *unshaped_roles]):
            seats.append(Seat(role, index, is_shaped=role in shaped_roles))
        return seats


def hub_lines(seats: list[Seat], paths: dict[str, str], bridged: bool) -> Iterator[str]:
    """Yield the lines for the hub. `paths` are those of the roles' namespaces.

    If `bridged`, a bridge joins the links `orders`; otherwise the wire joins them.
    """
    bridges = ["reports", "orders"] if bridged else ["reports"]
    yield "link set lo up"
    for bridge in bridges:
        yield f"link add {bridge} type bridge"
        yield f"link set {bridge} up"
    for seat in seats:
        yield _veth(seat, f"r{seat.index}", "reports", REPORTS, paths[seat.role])
        yield f"link set r{seat.index} master reports up"
        if seat.is_shaped:
            yield _veth(seat, f"o{seat.index}", "orders", ORDERS, paths[seat.role])
            yield f"link set o{seat.index} {'master orders' if bridged else ''} up"


def _veth(seat: Seat, hub_end: str, role_end: str, lan: int, path: str) -> str:
    """Return the line that makes a link between the hub and the namespace of a role."""
    return f"link add {hub_end} type veth peer name {role_end} address {seat.mac(lan)} netns {path}"


def role_lines(seat: Seat, seats: list[Seat]) -> Iterator[str]:
    """Yield the lines for the namespace of a role."""
    yield "link set lo up"
    for lan, name in ((ORDERS, "orders"), (REPORTS, "reports")):
        if lan == REPORTS or seat.is_shaped:
            yield f"addr add {seat.on(lan)}/24 dev {name}"
            yield f"link set {name} up"
            yield from _neighbours(seat, seats, lan, name)
    if not seat.is_shaped:
        # This role has no link `orders`. It reaches the addresses of shaped roles there by way of `reports`.
        for other in seats:
            if other.is_shaped:
                yield f"route add {other.on(ORDERS)}/32 via {other.on(REPORTS)}"


def _neighbours(seat: Seat, seats: list[Seat], lan: int, name: str) -> Iterator[str]:
    """Yield the lines that set the MAC addresses of all other roles on a network."""
    for other in seats:
        if other is not seat and (lan == REPORTS or other.is_shaped):
            yield f"neigh add {other.on(lan)} lladdr {other.mac(lan)} dev {name} nud permanent"
