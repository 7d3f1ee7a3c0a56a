"""A fixture for a fake machine."""

from tests.exchange_simulation.launching.record.fake_machine import machine as machine  # noqa: PLC0414 - a fixture
