"""Networks for runs: namespaces of their own for the components, joined by links with a rate and a delay.

    gateway ──┐ orders, 10.77.1.0/24: at the profile's rate and delay ┌── engine
              ├───────────────────────────────────────────────────────┤
    broker ───┘                                                       └── (no reporter)

    gateway, engine, broker, reporter ── reports, 10.77.2.0/24: as fast as veth is

One process, the holder, makes the network and keeps it: when it ends, the kernel removes everything.
Start reading at network.py.
"""
