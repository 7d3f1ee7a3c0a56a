"""Roles and their words as text, for a pipe to another host.

A role goes to its host as a pickle, since it has one of many kinds of tasks, and the launcher may run any command there
anyway. What comes back is plain JSON, so that a host cannot make the launcher run anything.
"""

from __future__ import annotations

import base64
import pickle
from typing import Any

import numpy as np

from exchange.measurements import LogBuckets
from exchange_simulation.messaging.roles import ReceivedPart, Role, RoleResult

LOG_BUCKETS = "log_buckets"
"""The only key of an object that stands for a histogram."""
RECEIVED_PART = "received_part"
"""The only key of an object that stands for what came of a part of the messages."""


def text_of_role(role: Role) -> str:
    """Return the role as a line of text."""
    return base64.b64encode(pickle.dumps(role)).decode()


def role_of_text(text: str) -> Role:
    """Return the role that `text_of_role` made a text of."""
    role = pickle.loads(base64.b64decode(text))
    assert isinstance(role, Role)
    return role


def plain_word(word: tuple[Any, ...]) -> list[Any]:
    """Return a word of a role as JSON takes it."""
    return [_plain(part) for part in word]


def word_of(plain: list[Any]) -> tuple[Any, ...]:
    """Return the word that `plain_word` made plain. LookupError, TypeError or ValueError if it cannot be one."""
    if plain[0] == "result":
        fields = {name: _restored(value) for name, value in plain[1].items()}
        return ("result", RoleResult(**fields))
    return tuple(plain)


def _plain(value: Any) -> Any:
    """Return a value with dicts, lists, numbers and texts alone."""
    if isinstance(value, RoleResult):
        value = vars(value)
    if isinstance(value, ReceivedPart):
        value = {RECEIVED_PART: vars(value)}
    if isinstance(value, LogBuckets):
        return {LOG_BUCKETS: value.as_lists()}
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if isinstance(value, np.generic):
        return value.item()
    return value


def _restored(value: Any) -> Any:
    """Return the value with its histograms, and with its parts of messages."""
    if isinstance(value, dict):
        if value.keys() == {LOG_BUCKETS}:
            return LogBuckets.from_sparse(value[LOG_BUCKETS])
        if value.keys() == {RECEIVED_PART}:
            return ReceivedPart(**{name: _restored(part) for name, part in value[RECEIVED_PART].items()})
        return {name: _restored(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_restored(part) for part in value]
    return value
