"""The places at which links meet, one for each transport and variant, are those of the transports' own tests."""

from tests.transports.conftest import broker_place, broker_place_of, url

__all__ = ["broker_place", "broker_place_of", "url"]
