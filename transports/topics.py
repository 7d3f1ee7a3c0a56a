"""Routing keys and the patterns that subscribe to them, as in AMQP: words between dots; `*` is one word, `#` any."""

from __future__ import annotations

from functools import cache

from transports.base import BadAddress

KEY_END = b"\0"
"""The byte between a key and its frame."""
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
    pattern_words = pattern.split(".")
    key_words = key.split(".")

    @cache
    def rest_matches(p: int, k: int) -> bool:
        """True if the pattern from word p on matches the key from word k on."""
        is_key_over = k == len(key_words)
        if p == len(pattern_words):
            return is_key_over
        if pattern_words[p] == "#":  # a `#` matches no word, or this word and perhaps more
            return rest_matches(p + 1, k) or (not is_key_over and rest_matches(p, k + 1))
        if is_key_over or pattern_words[p] not in ("*", key_words[k]):
            return False
        return rest_matches(p + 1, k + 1)

    return rest_matches(0, 0)


def prefixes(pattern: str) -> list[bytes]:
    """The prefixes of the frames whose keys match a pattern. BadAddress if prefixes cannot express the pattern."""
    words = pattern.split(".")
    if any(word in ("*", "#") for word in words[:-1]) or words[-1] == "*":
        raise BadAddress(
            f"ZeroMQ matches prefixes, so the pattern {pattern!r} may have a # at its end and no wildcard else"
        )
    if words[-1] != "#":
        return [pattern.encode() + KEY_END]
    stem = ".".join(words[:-1]).encode()
    return [stem + b".", stem + KEY_END] if stem else [b""]
