"""One colour for a transport everywhere; roles and transports share none."""

from __future__ import annotations

from exchange_simulation.reports.drawing.colours import (
    DARK,
    LIGHT,
    ROLE_COLOURS,
    TRANSPORT_COLOURS,
    line_colours,
    transport_colour,
)
from transports.registry import built_in


def test_no_colour_means_two_things() -> None:
    meanings = [*TRANSPORT_COLOURS.values(), *ROLE_COLOURS.values()]
    assert len(set(meanings)) == len(meanings)
    for palette in (LIGHT, DARK):
        assert len(set(palette.values())) == len(palette)


def test_every_transport_of_this_repository_declares_a_colour_of_the_palette() -> None:
    assert set(TRANSPORT_COLOURS) == set(built_in())
    assert set(TRANSPORT_COLOURS.values()) <= set(LIGHT) & set(DARK)


def test_a_transport_has_its_colour_by_name_variant_and_url() -> None:
    zeromq = TRANSPORT_COLOURS["zeromq"]
    names = ("zeromq", "zeromq+ipc", "zeromq://127.0.0.1:5601?packing=2", "zeromq?calls=slow")
    assert {transport_colour(name) for name in names} == {zeromq}
    assert transport_colour("of somebody else") is None


def test_a_transport_keeps_its_colour_whatever_stands_beside_it() -> None:
    for others in ([], ["amqp"], ["tcp", "amqp"], ["unknown", "tcp"]):
        found = line_colours({name: name for name in [*others, "zeromq"]})
        assert found["zeromq"] == TRANSPORT_COLOURS["zeromq"]
        assert len(set(found.values())) == len(found)


def test_lines_of_one_transport_have_different_colours() -> None:
    names = [f"zeromq, {size} B" for size in (1, 64, 1024)]
    found = line_colours(dict.fromkeys(names, "zeromq"))
    assert found[names[0]] == TRANSPORT_COLOURS["zeromq"]
    assert len(set(found.values())) == len(names)
