import gc

gc.set_threshold(100_000)
"""Imported modules stay in memory; collecting garbage among them would be a tenth of a component's start."""

from exchange_simulation.cli.start import start  # noqa: E402

start()
