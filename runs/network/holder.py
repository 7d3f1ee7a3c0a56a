"""The process that a network is: it makes the namespaces, then keeps them, and carries frames if that is the mechanism.

`python -m runs.network.holder PLAN`, in a network namespace of its own, which is the hub. It answers in lines of
JSON: when all is up, where the namespaces are; then its figures for each line that it is given. At end of file it goes,
and nothing has a name or another holder, so everything goes with it.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
from typing import Any

from runs.network import links
from runs.network.namespaces import inside, new_namespace
from runs.network.plan import Plan
from runs.network.topology import hub_lines, role_lines, seats


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        plan = Plan.from_json(sys.argv[1])
        namespaces = build(plan)
        wire = _wire(plan) if plan.mechanism == "wire" else None
    except OSError as error:
        _say({"event": "error", "message": str(error)})
        return
    _say({"event": "ready", "namespaces": namespaces})
    while True:
        wire.carry() if wire else select.select([0], [], [])
        if not os.read(0, 4096):
            return
        _say({"event": "figures", "wire": wire.figures() if wire else None})


def build(plan: Plan) -> dict[str, int]:
    """Each role's namespace, a descriptor of ours."""
    links.without_ipv6()
    table = seats(plan.roles, plan.unshaped)
    namespaces = {seat.role: new_namespace() for seat in table}
    paths = {role: f"/proc/self/fd/{fd}" for role, fd in namespaces.items()}
    for namespace in namespaces.values():
        with inside(namespace):
            links.without_ipv6()
    links.ip(hub_lines(table, paths, bridged=plan.mechanism != "wire"), namespaces.values())
    for seat in table:
        with inside(namespaces[seat.role]):
            links.ip(role_lines(seat, table))
            if seat.is_shaped:
                _shape(plan)
    return namespaces


def _shape(plan: Plan) -> None:
    """In a role's namespace."""
    if plan.rate_bit_per_s is None or plan.delay_us is None:
        return
    links.whole_frames("orders")
    if plan.mechanism == "netem":
        links.netem("orders", plan.rate_bit_per_s, plan.delay_us)


def _wire(plan: Plan) -> Any:
    from runs.network.wire import UserSpaceWire  # takes a second to import

    assert plan.rate_bit_per_s is not None
    assert plan.delay_us is not None
    ends = [f"o{seat.index}" for seat in seats(plan.roles, plan.unshaped) if seat.is_shaped]
    return UserSpaceWire(ends, plan.rate_bit_per_s, plan.delay_us, interrupt=0)


def _say(event: dict[str, Any]) -> None:
    print(json.dumps(event), flush=True)


if __name__ == "__main__":
    main()
