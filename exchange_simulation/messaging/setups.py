"""What the cells of each network share: a Setup (setup.py) for every network of a benchmark."""

from __future__ import annotations

import contextlib

from exchange.json_records import Record
from exchange_simulation.launching.launch.brokers import Brokers
from exchange_simulation.messaging.benchmark import BenchmarkDefinition
from exchange_simulation.messaging.cell import Cell
from exchange_simulation.messaging.point import Settings, networks_of
from exchange_simulation.messaging.setup import BenchmarkPlan, Setup


class Setups:
    """A context with the Setup of each network, all up at once, so that networks are measured in turns."""

    def __init__(
        self, benchmark: BenchmarkDefinition, plan: BenchmarkPlan, settings: Settings, brokers: Brokers
    ) -> None:
        """Check the settings of every transport. UserError for a mistake in them."""
        patterns = plan.patterns(benchmark)
        self._by_network = {
            network: Setup(patterns, settings, brokers, network=network) for network in networks_of(settings)
        }

    def __enter__(self) -> Setups:
        with contextlib.ExitStack() as stack:
            for setup in self._by_network.values():
                stack.enter_context(setup)
            self._stack = stack.pop_all()
        return self

    def of(self, cell: Cell) -> Setup:
        """The setup of the cell's network."""
        return self._by_network[cell.network]

    @property
    def facts(self) -> list[Record]:
        """What was measured of each emulated network before the benchmark."""
        return [setup.network.facts for setup in self._by_network.values() if setup.network]

    @property
    def broker_versions(self) -> dict[str, str]:
        """Product and version of the broker of each transport that has one on this host."""
        versions: dict[str, str] = {}
        for setup in self._by_network.values():
            versions |= setup.broker_versions
        return versions

    @property
    def hosts(self) -> list[Record]:
        """The hosts of --hosts with their facts; empty if all roles are on this host."""
        return [facts for setup in self._by_network.values() if setup.hosts for facts in setup.hosts.facts()]

    @property
    def disk(self) -> Record | None:
        """The disk of the brokers that keep messages when they end; None if there are none."""
        disks = [setup.disk for setup in self._by_network.values() if setup.disk]
        return disks[0] if disks else None

    def __exit__(self, *_: object) -> None:
        self._stack.close()
