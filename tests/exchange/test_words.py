"""Text that is safe to print."""

from __future__ import annotations

import pytest

from exchange.words import printable


@pytest.mark.parametrize("code", [0x1B, 0x9B, *range(0x202A, 0x202F), *range(0x2066, 0x206A), 0xDCFF])
def test_a_character_that_commands_a_terminal_is_an_escape(code: int) -> None:
    """U+202A to 202E and U+2066 to 2069 turn the direction of a line: a name could look like another."""
    assert printable(f"a{chr(code)}b") == f"a{ascii(chr(code))[1:-1]}b"
