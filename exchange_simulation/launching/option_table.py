"""The option table of runs and their components.

A setting's row is made from its declaration in exchange/settings.py. Click's options and the command lines that a
launcher starts components with both come from the table, so whatever is launched could have been typed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import click

from exchange.declared import (
    ENGINE,
    GATEWAY,
    REPORTER,
    RUN,
    SUBSCRIBER,
    NumberBetween,
    OneOfWords,
    Setting,
    Switch,
    WholeNumber,
)
from exchange.instances import MAX_PAIRS, MAX_SUBSCRIBERS
from exchange.settings import DECLARED
from exchange.workload import ARRIVALS
from exchange_simulation.launching.option_types import (
    Count,
    Cpus,
    Declared,
    Duration,
    KeysFolder,
    Nagle,
    OneOf,
    PlainNumber,
    Prices,
    RateOrShape,
    Scheme,
    SettingType,
    Suggested,
)

F = TypeVar("F", bound=Callable[..., Any])

MAX_CAPACITY = 1 << 29
"""The order book's own limit, repeated here because the book takes long to import."""

COMPONENTS = GATEWAY | ENGINE | REPORTER | SUBSCRIBER


@dataclass(frozen=True)
class Option:
    """A row of the table: the option's name, its parameter, and the commands that have it.

    The parameter of a setting is the setting's field in RunSettings.
    """

    name: str
    field: str
    commands: frozenset[str]
    help: str
    type: Any = None
    default: Any = None
    metavar: str | None = None
    is_flag: bool = False
    required: bool = False
    hidden: bool = False
    other_name: str | None = None

    @property
    def _attributes(self) -> dict[str, Any]:
        """The keywords for click.Option: every column that click knows and that is set."""
        keywords: dict[str, Any] = {"show_default": self.default not in (None, {})}
        for column in ("help", "type", "default", "metavar", "is_flag", "required", "hidden"):
            value = getattr(self, column)
            if value is not None and value is not False:
                keywords[column] = value
        return keywords

    @property
    def decorator(self) -> Callable[[F], F]:
        """The decorator that gives a command this option."""
        return click.option(*self._names, **self._attributes)

    @property
    def parameter(self) -> click.Option:
        """The option as click's object, for a command that is built without decorators."""
        return click.Option(self._names, **self._attributes)

    @property
    def _names(self) -> list[str]:
        return [name for name in (self.name, self.other_name, self.field) if name]

    def arguments(self, value: Any) -> list[str]:
        """Return the words that set the value. The list is empty for None, and for a flag that is not set."""
        if self.is_flag:
            return [self.name] if value else []
        argument = self.type.write(value) if isinstance(self.type, SettingType) else value
        return [] if argument is None else [self.name, str(argument)]


def _networks() -> Iterator[str]:
    """Yield the names of network profiles. Their module is imported late: only a shell's completion needs them."""
    from exchange_simulation.launching.network.profile import PROFILES

    yield from PROFILES


NOTATIONS: dict[str, SettingType[Any] | click.ParamType[Any]] = {
    "transport": Scheme(),
    "amqp_client": Declared("amqp", "client"),
    "delivery": Declared("amqp", "delivery"),
    "nagle": Nagle(),
    "network": Suggested(_networks),
    "secure": KeysFolder(),
    "orders_per_s": RateOrShape(),
    "arrivals": Suggested(lambda: ARRIVALS),
    "prices": Prices(),
    "tape": click.Path(dir_okay=False),
    "hosts": click.Path(dir_okay=False),
    "journal": click.Path(file_okay=False),
    "opening": click.Path(dir_okay=False),
    "cpus": Cpus(),
}
"""Types of settings with a notation of their own. The type of every other setting follows from its check."""


def _type_of(field: str, declared: Setting) -> Any:
    """Return the type that click reads the setting's option with; None for a flag, or for any text."""
    if field in NOTATIONS:
        return NOTATIONS[field]
    match declared.check:
        case WholeNumber():
            return Count()
        case NumberBetween():
            return Duration() if field.endswith("_s") else PlainNumber()
        case OneOfWords(words):
            return OneOf(words)
    return None


def _default_of(declared: Setting, option_type: Any) -> Any:
    """Return the default that click shows and uses, as a user would type it; None if the option has no default."""
    is_flag = isinstance(declared.check, Switch)
    if is_flag or not declared.has_fixed_default:
        return None
    if isinstance(option_type, SettingType):
        typed = option_type.write(declared.default)
        if typed is not None:
            return typed
    return declared.default


def _option_of(field: str, declared: Setting) -> Option:
    """Return the setting's row of the table."""
    option_type = _type_of(field, declared)
    return Option(
        name=declared.option,
        field=field,
        commands=declared.commands,
        help=declared.help,
        type=option_type,
        default=_default_of(declared, option_type),
        metavar=declared.metavar,
        is_flag=isinstance(declared.check, Switch),
        other_name=declared.other_name,
    )


TABLE = (
    Option(
        "--listen",
        "url",
        ENGINE,
        "Where the gateway connects to; with --gateways an address for each, in quotes, with a space between.",
        metavar="URL",
        required=True,
    ),
    Option("--listen", "url", REPORTER, "Where gateway and engine report to.", metavar="URL", required=True),
    Option("--engine", "engine_url", GATEWAY, "Where the matching engine listens.", metavar="URL", required=True),
    Option(
        "--reporter",
        "reporter_url",
        GATEWAY | ENGINE,
        "Where the stats reporter listens.",
        metavar="URL",
        required=True,
    ),
    Option(
        "--market-data",
        "market_data_url",
        ENGINE,
        "Where subscribers connect to; with --subscribers.",
        metavar="URL",
    ),
    Option(
        "--market-data",
        "market_data_url",
        SUBSCRIBER,
        "Where the matching engine publishes.",
        metavar="URL",
        required=True,
    ),
    Option("--run", "name", COMPONENTS, "The run's name; a peer that does not know it is refused.", required=True),
    Option("--results", "results", GATEWAY, "Where --record writes.", default="results", metavar="DIR"),
    Option("--results", "results", REPORTER, "Where the run's folder is.", default="results", metavar="DIR"),
    Option(
        "--timeout",
        "timeout_s",
        REPORTER,
        "Seconds of silence after which it gives up, with 2 s more, since gateways and engines speak once a second.",
        Duration(),
        60.0,
    ),
    Option(
        "--capacity",
        "capacity",
        ENGINE,
        "Most resting orders.  [default: the book grows]",
        click.IntRange(1, MAX_CAPACITY),
    ),
    Option(
        "--input",
        "input_path",
        ENGINE,
        "With --gateways: keep the orders of all gateways in this file, in the engine's order, for exchange match.",
        click.Path(dir_okay=False),
        metavar="FILE",
    ),
    Option("--ids", "with_ids", ENGINE, "Keep an index of ids, to take cancels and refuse duplicates.", is_flag=True),
    *(_option_of(field, declared) for field, declared in DECLARED.items()),
    Option(
        "--recover",
        "recover",
        REPORTER,
        "Continue numbering after the existing spool files.",
        is_flag=True,
        hidden=True,
    ),
    Option("--salvage", "salvage", ENGINE, "Go on with the orders before the damage in a journal.", is_flag=True),
    Option("--results", "results", RUN, "Where the run's folder is made.", default="results", metavar="DIR"),
    Option(
        "--instance",
        "instance",
        GATEWAY | ENGINE,
        "The number of its pair, or of its gateway.",
        click.IntRange(1, MAX_PAIRS),
        1,
    ),
    Option("--instance", "instance", REPORTER, "The number of this reporter.", click.IntRange(1, MAX_PAIRS), 1),
    Option(
        "--instance", "instance", SUBSCRIBER, "The number of this subscriber.", click.IntRange(1, MAX_SUBSCRIBERS), 1
    ),
    Option("--cpu", "cpu", COMPONENTS, "Stay on this processor.", click.IntRange(0, 4095)),
    Option("--launched", "launched", COMPONENTS, "Speak to a launcher, in events.", is_flag=True, hidden=True),
)
"""The rows stand in the order of each command's help. Settings are declared in exchange/settings.py."""


def arguments(command: str, values: Mapping[str, Any]) -> list[str]:
    """Return the words that a user would type after `exchange COMMAND` for these values, given by parameter."""
    words = []
    for option in TABLE:
        if command in option.commands and option.field in values:
            words += option.arguments(values[option.field])
    return words
