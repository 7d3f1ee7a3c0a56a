"""The process that holds a network: it makes the namespaces and keeps them open. In some networks it is also the wire.

`python -m exchange_simulation.launching.network.holder PLAN` runs in its own network namespace, which is the hub. The
holder writes lines of JSON: first the descriptors of the namespaces when the network is up, then its figures for each
line `figures` on stdin. A line `delay_us 20000` sets the delay of every link from then on. The holder ends at end of
file.

No other process has the namespaces open, and they have no names. So they disappear with the holder.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
from typing import TYPE_CHECKING, Any

from exchange_simulation.launching.network import links
from exchange_simulation.launching.network.topology import NetworkPlan, hub_lines, role_lines

if TYPE_CHECKING:
    from exchange_simulation.launching.network.wire import UserSpaceWire


def main() -> None:
    """Make the network, then carry frames and follow commands until end of file on stdin."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        plan = NetworkPlan(**json.loads(sys.argv[1]))
        namespaces = build(plan)
        wire = _wire(plan) if plan.mechanism == "wire" else None
    except OSError as error:
        _answer({"event": "error", "message": str(error)})
        return
    _answer({"event": "ready", "namespaces": namespaces})
    while True:
        if wire:
            wire.carry()
        else:
            select.select([0], [], [])
        commands = os.read(0, 4096).decode()
        if not commands:
            return
        for line in commands.splitlines():
            command, _, argument = line.partition(" ")
            if command == "delay_us":
                _set_delay(plan, namespaces, wire, float(argument))
            else:
                _answer({"event": "figures", "wire": wire.figures() if wire else None})


def _set_delay(plan: NetworkPlan, namespaces: dict[str, int], wire: UserSpaceWire | None, delay_us: float) -> None:
    """Set the delay of every shaped link. A network without delays does not change."""
    if wire:
        wire.set_delay(delay_us)
    elif plan.rate_bit_per_s is not None and plan.mechanism == "netem":
        for seat in plan.seats:
            if seat.is_shaped:
                with links.inside(namespaces[seat.role]):
                    links.netem("orders", plan.rate_bit_per_s, delay_us)


def build(plan: NetworkPlan) -> dict[str, int]:
    """Make the network. Returns the namespace of each role, as a descriptor of this process."""
    links.turn_ipv6_off()
    seats = plan.seats
    namespaces = {seat.role: links.new_namespace() for seat in seats}
    paths = {role: f"/proc/self/fd/{fd}" for role, fd in namespaces.items()}
    for namespace in namespaces.values():
        with links.inside(namespace):
            links.turn_ipv6_off()
    links.ip(hub_lines(seats, paths, bridged=plan.mechanism != "wire"), namespaces.values())
    for seat in seats:
        with links.inside(namespaces[seat.role]):
            links.ip(role_lines(seat, seats))
            if seat.is_shaped:
                _shape(plan)
    return namespaces


def _shape(plan: NetworkPlan) -> None:
    """Prepare the link `orders` of the current namespace, and if the mechanism is netem, set its rate and delay."""
    if plan.rate_bit_per_s is None or plan.delay_us is None:
        return
    links.send_whole_frames("orders")
    if plan.mechanism == "netem":
        links.netem("orders", plan.rate_bit_per_s, plan.delay_us)


def _wire(plan: NetworkPlan) -> UserSpaceWire:
    """Return the wire of a plan with this mechanism: a port for each shaped role. Commands on stdin interrupt it."""
    from exchange_simulation.launching.network.wire import UserSpaceWire  # takes a second to import

    assert plan.rate_bit_per_s is not None
    assert plan.delay_us is not None
    hub_ends = [f"o{seat.index}" for seat in plan.seats if seat.is_shaped]
    return UserSpaceWire(hub_ends, plan.rate_bit_per_s, plan.delay_us, interrupt=0)


def _answer(event: dict[str, Any]) -> None:
    """Write an event for the launcher."""
    print(json.dumps(event), flush=True)


if __name__ == "__main__":
    main()
