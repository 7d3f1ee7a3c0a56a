"""The option table of runs and their components, and the settings made of what was typed.

A setting's row is made from its declaration in exchange/settings.py. Click's options and the command lines that a
launcher starts components with both come from the table, so whatever is launched could have been typed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from exchange.allowed import BadSetting
from exchange.declared import ENGINE, GATEWAY, REPORTER, RUN, NumberBetween, OneOfWords, Setting, Switch, WholeNumber
from exchange.instances import MAX_PAIRS
from exchange.settings import DECLARED, DEFAULT_WINDOW, NAGLE_ROLES, ROLES, RunSettings
from exchange.workload import ARRIVALS
from exchange_simulation.launching.notices import say
from exchange_simulation.launching.option_types import (
    Count,
    Cpus,
    Declared,
    KeysFolder,
    Nagle,
    OneOf,
    Prices,
    Rate,
    Scheme,
    SettingType,
    Suggested,
)
from exchange_simulation.launching.priority import going_first, processors_of

F = TypeVar("F", bound=Callable[..., Any])

MAX_CAPACITY = 1 << 29
"""The order book's own limit, repeated here because the book takes long to import."""

COMPONENTS = GATEWAY | ENGINE | REPORTER


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
        """The keywords of click.Option: the columns that are not the table's own, where they are set."""
        keywords: dict[str, Any] = {"show_default": self.default not in (None, {})}
        for name, value in vars(self).items():
            is_own_column = name in {"name", "field", "commands", "other_name"}
            if not is_own_column and value is not None and value is not False:
                keywords[name] = value
        return keywords

    @property
    def decorator(self) -> Callable[[F], F]:
        return click.option(*self._names, **self._attributes)

    @property
    def parameter(self) -> click.Option:
        return click.Option(self._names, **self._attributes)

    @property
    def _names(self) -> list[str]:
        return [name for name in (self.name, self.other_name, self.field) if name]

    def arguments(self, value: Any) -> list[str]:
        """The words that set the value; none for None, and for a flag that is not set."""
        if self.is_flag:
            return [self.name] if value else []
        written = self.type.write(value) if isinstance(self.type, SettingType) else value
        return [] if written is None else [self.name, str(written)]


def _networks() -> Iterator[str]:
    """The names of profiles; the room is imported only when a shell asks."""
    from exchange_simulation.launching.network.profile import PROFILES

    yield from PROFILES


NOTATIONS: dict[str, SettingType[Any] | click.ParamType[Any]] = {
    "transport": Scheme(),
    "amqp_client": Declared("amqp", "client"),
    "delivery": Declared("amqp", "delivery"),
    "nagle": Nagle(),
    "network": Suggested(_networks),
    "secure": KeysFolder(),
    "orders_per_s": Rate(),
    "arrivals": Suggested(lambda: ARRIVALS),
    "prices": Prices(),
    "tape": click.Path(dir_okay=False),
    "journal": click.Path(file_okay=False),
    "cpus": Cpus(),
}
"""Types of settings with a notation of their own. The type of every other setting follows from its check."""


def _type_of(field: str, declared: Setting) -> Any:
    """The type that click reads the setting's option with; None for a flag, or for any text."""
    if field in NOTATIONS:
        return NOTATIONS[field]
    match declared.check:
        case WholeNumber():
            return Count()
        case NumberBetween():
            return float
        case OneOfWords(words):
            return OneOf(words)
    return None


def _option_of(field: str, declared: Setting) -> Option:
    """The setting's row of the table."""
    type_ = _type_of(field, declared)
    default = declared.default if declared.is_default_typed else None
    if isinstance(type_, SettingType) and type_.write(default) is not None:
        default = type_.write(default)
    is_flag = isinstance(declared.check, Switch)
    return Option(
        declared.option,
        field,
        declared.commands,
        declared.help,
        type_,
        None if is_flag else default,
        metavar=declared.metavar,
        is_flag=is_flag,
        other_name=declared.other_name,
    )


TABLE = (
    Option("--listen", "url", ENGINE, "Where the gateway connects to.", metavar="URL", required=True),
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
    Option("--run", "name", COMPONENTS, "The run's name; a peer that does not know it is refused.", required=True),
    Option("--results", "results", GATEWAY, "Where --record writes.", default="results", metavar="DIR"),
    Option("--results", "results", REPORTER, "Where the run's folder is.", default="results", metavar="DIR"),
    Option(
        "--timeout",
        "timeout_s",
        REPORTER,
        "Seconds of silence after which it gives up, with 2 s more, since gateways and engines speak once a second.",
        float,
        60.0,
    ),
    Option(
        "--capacity",
        "capacity",
        ENGINE,
        "Most resting orders.  [default: the book grows]",
        click.IntRange(1, MAX_CAPACITY),
    ),
    Option("--ids", "with_ids", ENGINE, "Keep an index of ids, to take cancels and refuse duplicates.", is_flag=True),
    *(_option_of(field, declared) for field, declared in DECLARED.items()),
    Option("--recover", "recover", REPORTER, "Go on behind the spool files that are there.", is_flag=True, hidden=True),
    Option("--salvage", "salvage", ENGINE, "Go on with the orders before the damage in a journal.", is_flag=True),
    Option("--results", "results", RUN, "Where the run's folder is made.", default="results", metavar="DIR"),
    Option("--instance", "instance", GATEWAY | ENGINE, "The number of its pair.", click.IntRange(1, MAX_PAIRS), 1),
    Option("--instance", "instance", REPORTER, "The number of this reporter.", click.IntRange(1, MAX_PAIRS), 1),
    Option("--cpu", "cpu", COMPONENTS, "Stay on this processor.", click.IntRange(0, 4095)),
    Option("--launched", "launched", COMPONENTS, "Speak to a launcher, in events.", is_flag=True, hidden=True),
)
"""In the order of each command's help. The options of settings are declared in exchange/settings.py."""


def arguments(command: str, values: Mapping[str, Any]) -> list[str]:
    """The words that a user would type after `exchange COMMAND` for these values, by parameter."""
    words = []
    for option in TABLE:
        if command in option.commands and option.field in values:
            words += option.arguments(values[option.field])
    return words


def together(options: Sequence[Callable[[F], F]]) -> Callable[[F], F]:
    """One decorator made of several, with the options in this order."""

    def decorate(command: F) -> F:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def options_of(command: str) -> Callable[[F], F]:
    """A decorator with all options that the command has in the table."""
    return together([option.decorator for option in TABLE if command in option.commands])


def options_for(*fields: str) -> Callable[[F], F]:
    """A decorator with the options of these parameters, for commands that have other options too."""
    shared = {option.field: option for option in TABLE if option.commands not in (GATEWAY, REPORTER)}
    return together([shared[field].decorator for field in fields])


broker_options = options_for("amqp_client", "delivery")
stream_options = options_for("seed", "prices")
market_options = options_for("price_model", "max_price", "policy")
terms_options = options_for("policy", "max_price", "packing")
session_options = options_for("sampling_interval", "timeout_s")
topology_option = options_for("topology")
network_option = options_for("network")
json_option = click.option("--json", "as_json", is_flag=True, help="Machine-readable output on stdout.")
no_spark_option = click.option(
    "--no-spark", is_flag=True, envvar="EXCHANGE_NO_SPARK", show_envvar=True, help="Leave out Spark's tables."
)
results_option = options_for("results")


def asked_for(given: Mapping[str, Any]) -> dict[str, Any]:
    """A command's parameters, without a rate and arrivals that nobody gave: a tape may have its own."""
    context = click.get_current_context()
    parameters = dict(given)
    for name in ("orders_per_s", "arrivals"):
        if context.get_parameter_source(name) is ParameterSource.DEFAULT:
            parameters.pop(name, None)
    return parameters


def run_settings(**given: Any) -> RunSettings:
    """The settings that the options give. UsageError names the option whose value is refused.

    A rate, or arrivals, are refused where a tape has others; left out, they are the tape's.
    """
    from exchange_simulation.launching.transport_settings import settled

    with naming_options():
        settings = settled(RunSettings(**_completed(given)))
    with going_first(settings.priority):  # or say at once that this user may not
        return settings


@contextlib.contextmanager
def naming_options() -> Iterator[None]:
    """Turn the BadSetting of a field into a UsageError of its option."""
    try:
        yield
    except BadSetting as error:
        raise click.UsageError(f"{_typed(error.field)} is {_short(error.value)}; allowed is {error.allowed}") from error


def _completed(given: dict[str, Any]) -> dict[str, Any]:
    """The same, with the options that the user left out and that follow from others."""
    fields = dict(given)
    if fields.get("tape"):
        from exchange_simulation.launching.tape import settled_by_tape

        fields |= settled_by_tape(fields)
    if fields.get("orders") is None and fields.get("duration_s") is None:
        fields["orders"] = RunSettings.orders
    is_as_fast_as_it_goes = "orders_per_s" in fields and fields["orders_per_s"] is None
    if is_as_fast_as_it_goes and fields.get("window") is None:
        fields["window"] = max(DEFAULT_WINDOW, fields.get("packing") or 1)
    if fields.get("nagle") == ("all",):
        from transports.registry import has_broker

        transport = fields.get("transport", RunSettings.transport)
        fields["nagle"] = NAGLE_ROLES if has_broker(transport) else ROLES
    return fields


def was_typed(field: str) -> bool:
    """Whether the parameter of the command that runs was on its command line."""
    context = click.get_current_context(silent=True)
    return context is not None and context.get_parameter_source(field) is ParameterSource.COMMANDLINE


def _typed(field: str) -> str:
    """The name of the field's option as the user typed it, or of the field if the command has no option for it."""
    option_of = {option.field: option.name for option in TABLE}
    context = click.get_current_context(silent=True)
    if context:
        of_command = {str(param.name): param.opts[0] for param in context.command.params}
        plural = f"{option_of.get(field)}s"  # as --rates of a trial
        if plural in of_command.values():
            return plural
        option_of = of_command or option_of
    return option_of.get(field, field.replace("_", "-"))


def _short(value: object) -> str:
    """A number as it was typed: 0, which became 0.0."""
    return f"{value:.10g}".replace("e+", "e") if isinstance(value, float) else str(value)


def warn_of_rejections(settings: RunSettings) -> None:
    if settings.tape is None:
        warn_of_prices(settings.prices, settings.max_price)


def warn_of_spinning(*runs: RunSettings) -> None:
    """Warn of a spin that does nothing, for lack of a rate, or that leaves the engine no processor."""
    spinning = [settings for settings in runs if settings.spin_ns]
    if any(settings.orders_per_s is None for settings in spinning):
        say("warning: --pace spin does nothing at --rate max, where no order waits for its due time")
    if spinning and len(processors_of()) == 1:
        say(f"warning: --pace {spinning[0].pace} with one processor: while the gateway spins, nothing else runs")


def warn_of_prices(prices: tuple[int, int], max_price: int) -> None:
    """Warn of prices outside of the book, which are allowed, but seldom meant."""
    low, high = prices
    if low < 1 or high > max_price:
        say(f"warning: --prices {low}..{high} leave the book's 1..{max_price}: such orders will be rejected")
