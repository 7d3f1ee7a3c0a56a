"""Text that is safe to print."""

from __future__ import annotations

import pytest

from exchange.words import printable


@pytest.mark.parametrize("code", [0x1B, 0x9B, *range(0x202A, 0x202F), *range(0x2066, 0x206A), 0xDCFF])
def test_a_character_that_controls_a_terminal_is_escaped(code: int) -> None:
    """U+202A to 202E and U+2066 to 2069 turn the direction of a line, so that one name could look like another."""
    escape = ascii(chr(code)).strip("'")
    assert printable(f"a{chr(code)}b") == f"a{escape}b"
