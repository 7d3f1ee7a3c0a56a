"""The plan of a network: its roles' seats and addresses, and the lines of `ip -batch` that make its interfaces.

A role has an interface `reports`, and one called `orders` if its link is shaped. The other ends, r0, r1 .. and
o0, o1 .., are in the hub, where `reports` is a bridge. Neighbours are set on both sides, so that no ARP crosses a
slow link.
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
    """A role's place: `index` + 1 is its host number on both networks, `index` its port in the wire."""

    role: str
    index: int
    is_shaped: bool

    @property
    def address(self) -> str:
        """The address at which the other roles reach this one."""
        return self.on(ORDERS if self.is_shaped else REPORTS)

    def on(self, lan: int) -> str:
        """The address on one of the two networks."""
        return f"{NET}.{lan}.{self.index + 1}"

    def mac(self, lan: int) -> str:
        """A locally administered address; its last bytes are the network and the index."""
        return f"02:00:00:00:{lan:02x}:{self.index:02x}"


@dataclass(frozen=True)
class NetworkPlan:
    """The network that the holder makes."""

    roles: list[str]
    unshaped: list[str]
    """Roles whose link is as fast as veth is."""
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
    """Lines for the hub; `paths` are the roles' namespaces.

    The links `orders` get a bridge if they are `bridged`; otherwise the wire joins them.
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
    return f"link add {hub_end} type veth peer name {role_end} address {seat.mac(lan)} netns {path}"


def role_lines(seat: Seat, seats: list[Seat]) -> Iterator[str]:
    """Lines for the namespace of a role."""
    yield "link set lo up"
    for lan, name in ((ORDERS, "orders"), (REPORTS, "reports")):
        if lan == REPORTS or seat.is_shaped:
            yield f"addr add {seat.on(lan)}/24 dev {name}"
            yield f"link set {name} up"
            yield from _neighbours(seat, seats, lan, name)
    if not seat.is_shaped:  # this role has no link `orders`: it reaches the shaped roles' addresses there by `reports`
        for other in seats:
            if other.is_shaped:
                yield f"route add {other.on(ORDERS)}/32 via {other.on(REPORTS)}"


def _neighbours(seat: Seat, seats: list[Seat], lan: int, name: str) -> Iterator[str]:
    for other in seats:
        if other is not seat and (lan == REPORTS or other.is_shaped):
            yield f"neigh add {other.on(lan)} lladdr {other.mac(lan)} dev {name} nud permanent"
