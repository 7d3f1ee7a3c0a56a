"""The subjects of a subscriber: each message comes once, and what NATS cannot express is refused in words."""

from __future__ import annotations

import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from transports.base import Address, BadAddress, Pattern
from transports.nats.subjects import subjects_of_subscriber
from transports.topics import matches

patterns = st.lists(st.sampled_from(["a", "b", "*"]), min_size=1, max_size=3).flatmap(
    lambda words: st.sampled_from([".".join(words), ".".join([*words, "#"])])
)
keys = st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=4).map(".".join)


def subjects_of(*patterns_of_subscriber: str) -> list[str]:
    """Return the subjects of a subscriber, without the words of the conversation."""
    address = Address.parse("nats://host", "run", Pattern.TOPIC, patterns_of_subscriber)
    return [subject.removeprefix("base.out.") for subject in subjects_of_subscriber(address, "base")]


def fits(subject: str, key: str) -> bool:
    """Return whether a NATS server delivers a message with this key to a subscription."""
    words = subject.split(".")
    words_of_key = key.split(".")
    if words[-1] == ">":
        return len(words_of_key) >= len(words) and fits(".".join(words[:-1]), ".".join(words_of_key[: len(words) - 1]))
    return len(words) == len(words_of_key) and all(
        word in ("*", other) for word, other in zip(words, words_of_key, strict=True)
    )


@given(st.lists(patterns, min_size=1, max_size=3), keys)
def test_a_message_comes_once_if_a_pattern_fits_and_else_never(asked: list[str], key: str) -> None:
    try:
        subjects = subjects_of(*asked)
    except BadAddress:
        reject()
    deliveries = sum(fits(subject, key) for subject in subjects)
    assert deliveries == any(matches(pattern, key) for pattern in asked)


def test_a_pattern_within_another_one_needs_no_subscription() -> None:
    assert subjects_of("news.*", "news.usa", "news.#") == ["news", "news.>"]


def test_patterns_of_which_neither_covers_the_other_are_refused_by_name() -> None:
    with pytest.raises(BadAddress, match=r"twice that fits 'news\.\*' and '\*\.usa'"):
        subjects_of("news.*", "*.usa")
