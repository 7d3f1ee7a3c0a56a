"""Several components of one role in a run: gateway, gateway.2, ...; each gateway has the engine of the same number.

A source's or a meter's number is less than 8. On the wire, its byte has the instance in the high five bits:

    byte = (instance - 1) << 3 | number
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from exchange.words import counted

NUMBER_BITS = 3
INSTANCES = range(1, 1 + (1 << 8 - NUMBER_BITS))
"""The instances whose numbers fit in a byte."""
MAX_PAIRS = 16
"""The most pairs of a run, each a gateway and its engine."""
MAX_GATEWAYS = 16
"""The most gateways of a market."""
MAX_ENGINES = 16
"""The most engines among which the instruments of a market are shared out."""
MAX_SUBSCRIBERS = 64
"""The most subscribers to market data in a run."""


def tagged(number: int, instance: int) -> int:
    """Return the byte on the wire. For the first instance it is the number itself."""
    return (instance - 1) << NUMBER_BITS | number


def untagged(byte: int) -> tuple[int, int]:
    """Return the number and the instance of a byte."""
    number = byte & (1 << NUMBER_BITS) - 1
    instance = 1 + (byte >> NUMBER_BITS)
    return number, instance


def named(role: str, instance: int) -> str:
    """Return a component's name, as records have it: gateway, gateway.2, ..."""
    return role if instance == 1 else f"{role}.{instance}"


def spool_file(number: int, reporter: int = 1) -> str:
    """Return the name of a reporter's spool file. The files of several reporters lie in one folder."""
    return f"{number:06}.jsonl" if reporter == 1 else f"{reporter}-{number:06}.jsonl"


def orders_file(gateway: int) -> str:
    """Return the name of the file with the orders of a gateway."""
    return f"{named('orders', gateway)}.bin"


def answers_file(gateway: int, engine: int = 1) -> str:
    """Return the name of the file with a gateway's answers from an engine.

    For example: answers.bin and, of gateway 2, answers.2.bin; from engine 2, answers-2.bin and answers-2.2.bin
    """
    stem = "answers" if engine == 1 else f"answers-{engine}"
    return f"{named(stem, gateway)}.bin"


def input_file(engine: int) -> str:
    """Return the name of the file with the orders of all gateways at an engine, in the engine's order."""
    return f"{named('input', engine)}.bin"


def role_of(name: str) -> str:
    """Return the role in a name that `named` made."""
    return name.partition(".")[0]


def instance_of(name: str) -> int:
    """Return the instance in a name that `named` made."""
    _role, _, instance = name.partition(".")
    return int(instance) if instance else 1


def components_in_words(names: Iterable[str]) -> str:
    """Return components in words: the name of each, or how many of a role there are if there are several.

    For example: engine, 16 gateways, subscriber.2
    """
    names_of_roles: defaultdict[str, list[str]] = defaultdict(list)
    for name in names:
        names_of_roles[role_of(name)].append(name)
    words = []
    for role, names_of_role in names_of_roles.items():
        if len(names_of_role) == 1:
            words.append(names_of_role[0])
        else:
            words.append(counted(len(names_of_role), f"{role}s"))
    return ", ".join(words)
