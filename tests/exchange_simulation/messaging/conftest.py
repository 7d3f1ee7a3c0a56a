"""Fixtures of the transports' tests: `url` is an address for each transport and variant."""

from tests.transports.conftest import broker_place, broker_place_of, url

__all__ = ["broker_place", "broker_place_of", "url"]
