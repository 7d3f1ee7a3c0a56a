"""Routing keys and the patterns that subscribe to them, as in AMQP: words with dots between, `*` is one, `#` any."""

from __future__ import annotations

from functools import cache

from transports.base import BadAddress

KEY_END = b"\0"
"""What ends a key where it stands in front of its frame."""
MOST_KEY_BYTES = 255


def check_key(key: str) -> str:
    """BadAddress where it is none that every transport carries."""
    if len(key.encode()) > MOST_KEY_BYTES or "\0" in key:
        raise BadAddress(f"the routing key {key[:40]!r} has to be of at most {MOST_KEY_BYTES} bytes, none of them 0")
    return key


def matches(pattern: str, key: str) -> bool:
    """Whether a queue that is bound with the pattern gets messages of the key."""
    wanted, words = pattern.split("."), key.split(".")

    @cache
    def rest(i: int, k: int) -> bool:
        if i == len(wanted):
            return k == len(words)
        if wanted[i] == "#":
            return rest(i + 1, k) or (k < len(words) and rest(i, k + 1))
        return k < len(words) and wanted[i] in ("*", words[k]) and rest(i + 1, k + 1)

    return rest(0, 0)


def prefixes(pattern: str) -> list[bytes]:
    """What frames begin with whose key matches. BadAddress where prefixes cannot say it."""
    words = pattern.split(".")
    if any(word in ("*", "#") for word in words[:-1]) or words[-1] == "*":
        raise BadAddress(
            f"ZeroMQ matches prefixes, so the pattern {pattern!r} may have a # at its end and no wildcard else"
        )
    if words[-1] != "#":
        return [pattern.encode() + KEY_END]
    stem = ".".join(words[:-1]).encode()
    return [stem + b".", stem + KEY_END] if stem else [b""]
