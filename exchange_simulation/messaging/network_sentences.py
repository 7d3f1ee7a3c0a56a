"""Sentences on the emulated networks between the roles of a benchmark, and why one is not what was asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from exchange_simulation.reports.formats.numbers import number_text


def network_sentences(networks: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield how each network was made, and its round trips as they were measured before the benchmark.

    For example: network gige, by wire; round trips: publisher-consumer 161 us, where the profile alone takes 101 us
    """
    for network in networks:
        trips = []
        for roles, round_trip in network["round_trip_us"].items():
            words = f"{roles} {number_text(round_trip['median'])} us"
            if "expected" in round_trip:
                words += f", where the profile alone takes {number_text(round_trip['expected'])} us"
            trips.append(words)
        yield f"network {network['profile']}, by {network['mechanism']}; round trips: {'; '.join(trips)}"


def unlike_networks(networks: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield a sentence for each network that is not the one that was asked for."""
    for network in networks:
        if network["flags"]:
            yield f"{network['profile']} is not the network that was asked for: {'; '.join(network['flags'])}"
