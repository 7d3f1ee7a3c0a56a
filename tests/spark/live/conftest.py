"""The tests of this folder have a Spark session apart from that of the other folders: two processes share the work."""

import pytest


def pytest_itemcollected(item: pytest.Item) -> None:
    if "spark" in getattr(item, "fixturenames", ()):
        item.add_marker(pytest.mark.xdist_group("second Spark session"))
