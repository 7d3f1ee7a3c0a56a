"""Tests of this folder may run on a made-up machine."""

from tests.exchange_simulation.launching.record.fake_machine import machine as machine  # noqa: PLC0414 - a fixture
