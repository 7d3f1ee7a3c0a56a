"""Routing keys and the patterns that subscribe to them, as in AMQP: words between dots; `*` is one word, `#` any."""

from __future__ import annotations

from functools import cache

from transports.base import BadAddress

KEY_END = b"\0"
"""The end of a key that stands before its frame."""
MOST_KEY_BYTES = 255


def check_key(key: str) -> str:
    """Return a key that every transport carries. BadAddress for any other."""
    if len(key.encode()) > MOST_KEY_BYTES or "\0" in key:
        raise BadAddress(f"the routing key {key[:40]!r} has to be of at most {MOST_KEY_BYTES} bytes, none of them 0")
    return key


def key_prefix(key: str) -> bytes:
    """The bytes before each frame that a publisher sends with a key. BadAddress for a bad key."""
    return check_key(key).encode() + KEY_END


def matches(pattern: str, key: str) -> bool:
    """True if a queue that is bound with the pattern gets messages of the key."""
    wanted = pattern.split(".")
    words = key.split(".")

    @cache
    def rest(i: int, k: int) -> bool:
        if i == len(wanted):
            return k == len(words)
        if wanted[i] == "#":
            return rest(i + 1, k) or (k < len(words) and rest(i, k + 1))
        return k < len(words) and wanted[i] in ("*", words[k]) and rest(i + 1, k + 1)

    return rest(0, 0)


def prefixes(pattern: str) -> list[bytes]:
    """The prefixes of frames whose keys match. BadAddress if prefixes cannot express the pattern."""
    words = pattern.split(".")
    if any(word in ("*", "#") for word in words[:-1]) or words[-1] == "*":
        raise BadAddress(
            f"ZeroMQ matches prefixes, so the pattern {pattern!r} may have a # at its end and no wildcard else"
        )
    if words[-1] != "#":
        return [pattern.encode() + KEY_END]
    stem = ".".join(words[:-1]).encode()
    return [stem + b".", stem + KEY_END] if stem else [b""]
