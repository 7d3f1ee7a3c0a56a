"""Redis' protocol, RESP3, read in Python: every value that is no frame. Commands are written here, too.

Source: the specification of RESP, redis.io/docs/latest/develop/reference/protocol-spec.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

LONGEST_LINE = 4096
"""The longest line that a server sends before a value, or as one, in bytes."""
LONGEST_TEXT = 1 << 24
MOST_ITEMS = 1 << 20
DEEPEST = 8
"""How deep the values that we ask for lie in each other, at most."""
LINE_END = b"\r\n"


class NoResp(Exception):
    """Bytes that are no RESP; the text shows them."""


@dataclass(frozen=True)
class ErrorReply:
    """A server's answer that it refuses a command."""

    text: str
    """The answer: `NOAUTH Authentication required.`"""

    @property
    def code(self) -> str:
        """The first word: NOAUTH, OOM, MOVED, ERR, ..."""
        return self.text.partition(" ")[0]


@dataclass(frozen=True)
class Push:
    """A value that a server sends unasked: a message of a channel, or the answer to a subscription."""

    items: list[Any]


@dataclass(frozen=True)
class ParsedReply:
    """A value, and the place behind it."""

    value: Any
    """int, float, bool, bytes, None, list, dict, Push or ErrorReply."""
    end: int


def command(*words: str | bytes) -> bytes:
    """A command as a server reads it."""
    parts = [b"*%d\r\n" % len(words)]
    for word in words:
        data = word.encode() if isinstance(word, str) else word
        parts.append(b"$%d\r\n%s\r\n" % (len(data), data))
    return b"".join(parts)


def parse(data: bytes, at: int, depth: int = 0) -> ParsedReply | None:
    """Read the value at a place; None if it has not come as a whole. NoResp if there is no value."""
    line_end = data.find(LINE_END, at, at + LONGEST_LINE)
    if line_end < 0:
        if len(data) - at >= LONGEST_LINE:
            raise NoResp(repr(data[at : at + 80]))
        if at < len(data) and data[at : at + 1] not in b"+-:$*_#,(!=%~>|":
            raise NoResp(repr(data[at : at + 80]))
        return None
    kind = data[at : at + 1]
    line = data[at + 1 : line_end]
    after_line = line_end + len(LINE_END)
    if kind in b"+-:#,(_" and kind:
        return ParsedReply(_value_of_line(kind, line), after_line)
    if kind in b"$!=" and kind:
        return _parse_text(data, kind, line, after_line)
    if kind in b"*~>%|" and kind and depth < DEEPEST:
        return _parse_items(data, kind, line, after_line, depth)
    raise NoResp(repr(data[at : at + 80]))


def _value_of_line(kind: bytes, line: bytes) -> Any:
    """The value that stands on a line alone."""
    if kind == b"+":
        return line
    if kind == b"-":
        return ErrorReply(line.decode("utf-8", "replace"))
    if kind == b"_":
        return None
    if kind == b"#":
        return line == b"t"
    try:
        if kind == b",":
            return float(line)
        return int(line)
    except ValueError:
        raise NoResp(repr(kind + line)) from None


def _number(line: bytes, most: int) -> int:
    """The number of a line, at least -1. NoResp for anything else."""
    try:
        number = int(line)
    except ValueError:
        raise NoResp(repr(line[:80])) from None
    if not -1 <= number <= most:
        raise NoResp(repr(line[:80]))
    return number


def _parse_text(data: bytes, kind: bytes, line: bytes, begin: int) -> ParsedReply | None:
    size = _number(line, LONGEST_TEXT)
    if size < 0:
        return ParsedReply(None, begin)
    end = begin + size
    if len(data) < end + len(LINE_END):
        return None
    if data[end : end + len(LINE_END)] != LINE_END:
        raise NoResp(repr(data[end : end + 80]))
    text = data[begin:end]
    if kind == b"!":
        return ParsedReply(ErrorReply(text.decode("utf-8", "replace")), end + len(LINE_END))
    if kind == b"=":
        return ParsedReply(text[4:], end + len(LINE_END))
    return ParsedReply(text, end + len(LINE_END))


def _parse_items(data: bytes, kind: bytes, line: bytes, at: int, depth: int) -> ParsedReply | None:
    number = _number(line, MOST_ITEMS)
    if number < 0:
        return ParsedReply(None, at)
    is_map = kind in b"%|"
    items: list[Any] = []
    for _ in range(2 * number if is_map else number):
        item = parse(data, at, depth + 1)
        if item is None:
            return None
        items.append(item.value)
        at = item.end
    if kind == b"|":
        return parse(data, at, depth + 1)  # attributes stand before the value that they describe
    if is_map:
        return ParsedReply(_map_of(items), at)
    if kind == b">":
        return ParsedReply(Push(items), at)
    return ParsedReply(items, at)


def _map_of(items: list[Any]) -> dict[Any, Any]:
    """A map of keys and values that stand in turn. NoResp for a key that is no text or number."""
    pairs = {}
    for at in range(0, len(items), 2):
        key = items[at]
        if not isinstance(key, (bytes, int, float)):
            raise NoResp(f"a map with the key {key!r}")
        pairs[key] = items[at + 1]
    return pairs
