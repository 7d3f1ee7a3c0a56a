"""Components in words."""

from __future__ import annotations

from exchange.instances import components_in_words, named


def test_several_components_of_a_role_are_counted_and_a_single_one_is_named() -> None:
    gateways = [named("gateway", number) for number in range(1, 17)]
    assert components_in_words(["engine", *gateways, "subscriber.2"]) == "engine, 16 gateways, subscriber.2"
