"""Sentences on the emulated networks between the roles of a benchmark, and why one is not what was asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from exchange.unique import unique
from exchange_simulation.reports.formats.numbers import number_text


def network_sentences(networks: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield how each network was made, and its round trips as they were measured before the benchmark.

    For example: network gige, emulated by wire; round trips, of which the profile alone makes 101 us:
    publisher-consumer 161 us
    """
    for network in networks:
        round_trips = network["round_trip_us"]
        measured = [f"{roles} {number_text(trip['median'])} us" for roles, trip in round_trips.items()]
        of_profile = unique(number_text(trip["expected"]) for trip in round_trips.values() if "expected" in trip)
        alone = f", of which the profile alone makes {of_profile[0]} us" if of_profile else ""
        how = f"network {network['profile']}, emulated by {network['mechanism']}"
        yield f"{how}; round trips{alone}: {'; '.join(measured)}"


def unlike_networks(networks: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield a sentence for each network that is not the one that was asked for."""
    for network in networks:
        if network["flags"]:
            yield f"{network['profile']} is not the network that was asked for: {'; '.join(network['flags'])}"
