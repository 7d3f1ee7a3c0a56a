"""The folder of keys in a transport's URL is added, and replaced by another."""

from __future__ import annotations

import pytest

from exchange_simulation.launching.transport_urls import with_keys, with_other_keys


def test_the_folder_of_keys_is_added_unless_the_url_names_the_same_folder() -> None:
    assert with_keys("tcp://127.0.0.1:1", "/k") == "tcp://127.0.0.1:1?keys=/k"
    assert with_keys("tcp://127.0.0.1:1?keys=/k", "/k") == "tcp://127.0.0.1:1?keys=/k"
    assert with_keys("tcp://127.0.0.1:1?keys=/k2", "/k") == "tcp://127.0.0.1:1?keys=/k2&keys=/k"


@pytest.mark.parametrize(
    ("text", "replaced"),
    [
        ("tcp://a:1?keys=/k", "tcp://a:1?keys=/copy"),
        ("tcp://a:1?keys=/k&nodelay=off", "tcp://a:1?keys=/copy&nodelay=off"),
        ("tcp://a:1?keys=/k tcp://b:2?keys=/k", "tcp://a:1?keys=/copy tcp://b:2?keys=/copy"),
        ("tcp://a:1?keys=/k2", "tcp://a:1?keys=/k2"),
        ("tcp://a:1?keys=/k/sub tcp://b:2?keys=/k", "tcp://a:1?keys=/k/sub tcp://b:2?keys=/copy"),
    ],
)
def test_only_the_same_folder_of_keys_is_replaced(text: str, replaced: str) -> None:
    assert with_other_keys(text, "/k", "/copy") == replaced


@pytest.mark.parametrize("written", ["/my%20keys", "/my keys"])
def test_a_folder_of_keys_is_replaced_quoted_or_as_typed(written: str) -> None:
    url = f"tcp://a:1?keys={written}&nodelay=off"
    assert with_other_keys(url, "/my keys", "/a copy") == "tcp://a:1?keys=/a%20copy&nodelay=off"
