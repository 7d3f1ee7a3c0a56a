"""The names of a run's channels and streams at the server: all keys of a run begin with the same words."""

from __future__ import annotations

from urllib.parse import quote

from transports.base import Address
from transports.run_code import run_code


def words_of_run(run: str) -> str:
    """The words with which the keys of a run begin."""
    return f"exchange:{run_code(run)}"


def base_of(address: Address) -> str:
    """The first words of a conversation's keys; two conversations never share them."""
    pair = quote(address.options.get("pair", "1"), safe="")
    return f"{words_of_run(address.token)}:{address.pattern.value}:{pair}"
