"""The subjects of a conversation over NATS, and of the keys and patterns of its topics."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote

from transports.base import Address, BadAddress, Pattern
from transports.run_code import run_code
from transports.topics import check_key

ONE_WORD = "*"
MORE_WORDS = ">"
"""NATS's wildcard for one word or more, at the end of a subject."""


def words_of_run(run: str) -> str:
    """The words with which the subjects of a run begin."""
    return f"exchange.{run_code(run)}"


def base_of(address: Address) -> str:
    """The first words of a conversation's subjects; two conversations never share them."""
    pair = quote(address.options.get("pair", "1"), safe="").replace(".", "%2E")  # one word
    return f"{words_of_run(address.token)}.{address.pattern.value}.{pair}"


def subject_of_publisher(address: Address, base: str) -> str:
    """The subject to which a publisher publishes. BadAddress for a bad key."""
    if address.pattern is not Pattern.TOPIC:
        return f"{base}.out"
    words = check_key(address.keys[0]).split(".")
    return ".".join([f"{base}.out", *map(_quoted, words)])


def subjects_of_subscriber(address: Address, base: str) -> list[str]:
    """The subjects to which a subscriber subscribes, none of which covers a message that another one covers.

    BadAddress for a pattern that NATS cannot express, and for two patterns by which a message would come twice.
    """
    if address.pattern is not Pattern.TOPIC:
        return [f"{base}.out"]
    subjects: list[list[str]] = []
    for pattern in address.keys:
        subjects += _subjects_of_pattern(pattern)
    subjects = _without_covered(subjects)
    for place, subject in enumerate(subjects):
        for other in subjects[:place]:
            if _overlap(subject, other):
                raise BadAddress(
                    f"NATS would deliver a message twice that fits {'.'.join(other)!r} and {'.'.join(subject)!r}: "
                    "give patterns of which no message fits two"
                )
    return [".".join([f"{base}.out", *subject]) for subject in subjects]


def _subjects_of_pattern(pattern: str) -> list[list[str]]:
    """The words of the subjects that a pattern stands for. BadAddress if NATS cannot express the pattern."""
    words = check_key(pattern).split(".")
    if "#" in words[:-1]:
        raise BadAddress(f"NATS has > at the end of a pattern only, so {pattern!r} may have a # at its end only")
    stem = [word if word == ONE_WORD else _quoted(word) for word in words if word != "#"]
    if words[-1] == "#":  # of AMQP, which stands for no word, too
        return [stem, [*stem, MORE_WORDS]]
    return [stem]


def _without_covered(subjects: Sequence[list[str]]) -> list[list[str]]:
    """The subjects without repetitions, and without those all of whose messages another one has."""
    remaining = []
    for subject in subjects:
        if subject in remaining:
            continue
        if not any(_covers(other, subject) for other in subjects if other != subject):
            remaining.append(subject)
    return remaining


def _covers(wide: Sequence[str], narrow: Sequence[str]) -> bool:
    """True if every message of the subject `narrow` is one of `wide`."""
    for place, word in enumerate(wide):
        if place == len(narrow):
            return False
        if word == MORE_WORDS:
            return True
        if narrow[place] == MORE_WORDS or word not in (ONE_WORD, narrow[place]):
            return False
    return len(wide) == len(narrow)


def _overlap(one: Sequence[str], other: Sequence[str]) -> bool:
    """True if a message can have both subjects."""
    for word, other_word in zip(one, other, strict=False):
        if MORE_WORDS in (word, other_word):
            return True
        if word != other_word and ONE_WORD not in (word, other_word):
            return False
    return len(one) == len(other)


def _quoted(word: str) -> str:
    """A word of a key as NATS takes it, since NATS forbids some characters; an empty one becomes a lone %."""
    return quote(word, safe="") or "%"
