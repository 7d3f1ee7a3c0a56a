"""Emulated networks for runs: each component has its own network namespace; links with a rate and a delay join them.

    gateway ──┐ orders, 10.77.1.0/24: at the profile's rate and delay ┌── engine
              ├───────────────────────────────────────────────────────┤
    broker ───┘                                                       └── (no reporter)

    gateway, engine, broker, reporter ── reports, 10.77.2.0/24: as fast as veth is

One process, the holder, makes the network and keeps it open. When the holder ends, the kernel removes the network.
Start reading at network.py.
"""
