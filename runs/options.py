"""Options that commands share, and the run settings made of them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from decimal import Decimal, InvalidOperation
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from exchange.allowed import BadSetting
from exchange.instances import MAX_PAIRS, role_of
from exchange.settings import (
    DEFAULT_WINDOW,
    MAX_RATE_PER_S,
    NAGLE_ROLES,
    POLICIES,
    ROLES,
    TOPOLOGIES,
    RunSettings,
)
from exchange.workload import PRICE_MODELS
from runs.transport_settings import settled
from transports.amqp import TRANSPORT as AMQP
from transports.registry import has_broker

F = TypeVar("F", bound=Callable[..., Any])

MOST_DIGITS = 20
"""Of a count: more than any bound, and few enough to be written out."""
MAX_CAPACITY = 1 << 29
"""As the order book has it, which takes long to import."""


class Rate(click.ParamType[float | None]):
    """Orders a second, or max: as fast as it goes."""

    name = "rate"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float | None:
        if value is None or value == "max":
            return None
        try:
            return float(value)
        except ValueError:
            self.fail(f"{value!r} is no rate: give orders a second, 0.001 to {MAX_RATE_PER_S:,}, or max", param, ctx)


class Count(click.ParamType[int]):
    """A whole number, also as 1e9."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            number = Decimal(value)
        except InvalidOperation:
            number = Decimal("NaN")
        if not (number.is_finite() and number.adjusted() < MOST_DIGITS and number == int(number)):
            self.fail(f"{value!r} is no whole number: give one, as 1000000 or 1e9", param, ctx)
        return int(number)


class Prices(click.ParamType[tuple[int, int]]):
    """LOW..HIGH in ticks."""

    name = "low..high"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, int]:
        if isinstance(value, tuple):
            return value
        low, dots, high = str(value).partition("..")
        if not (dots and low.isdecimal() and high.isdecimal()):
            self.fail(f"{value!r} is no range of prices: give LOW..HIGH in ticks, as 450..549", param, ctx)
        return int(low), int(high)


class Cpus(click.ParamType[dict[str, int]]):
    """ROLE=CPU,ROLE=CPU."""

    name = "role=cpu,.."

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> dict[str, int]:
        if isinstance(value, dict):
            return value
        pairs = [part.partition("=") for part in str(value).split(",")]
        if not all(role_of(name) in ROLES and cpu.isdecimal() for name, _, cpu in pairs):
            self.fail(f"{value!r} places nothing: give ROLE=CPU pairs, as gateway=0,engine=1", param, ctx)
        return {name: int(cpu) for name, _, cpu in pairs}


class Nagle(click.ParamType[tuple[str, ...]]):
    """ROLE,ROLE, all or none; all is settled, and roles are checked, once the transport is known."""

    name = "role,.."

    def convert(self, value: Any, _param: click.Parameter | None, _ctx: click.Context | None) -> tuple[str, ...]:
        if isinstance(value, tuple):
            return value
        return () if value == "none" else tuple(part.strip() for part in str(value).split(","))


class Listed(click.ParamType[list[Any]]):
    """Values of one type, with commas between them."""

    name = "list"

    def __init__(self, of: click.ParamType[Any]) -> None:
        self._of = of

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> list[Any]:
        if isinstance(value, list):
            return value
        return [self._of.convert(part.strip(), param, ctx) for part in str(value).split(",") if part.strip()]


def together(options: list[Callable[[F], F]]) -> Callable[[F], F]:
    def decorate(command: F) -> F:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


_WORKLOAD = {
    "rate": click.option("--rate", "orders_per_s", type=Rate(), default="8000", show_default=True,
                         help="Offered load, orders a second, or max."),
    "arrivals": click.option("--arrivals", default="fixed", show_default=True, metavar="WORD",
                             help="When orders arrive: fixed, poisson, bursts:100, ramp:0.1..1."),
    "orders": click.option("--orders", type=int, help="How many.  [default: a tape's, what --duration allows, 80000]"),
    "duration": click.option("--duration", "duration_s", type=float, help="Stop offering after so many seconds."),
    "seed": click.option("--seed", type=int, default=1, show_default=True, help="The same seed, the same orders."),
    "prices": click.option("--prices", type=Prices(), default="450..549", show_default=True,
                           help="Order prices, lowest and highest, ticks."),
    "price_model": click.option("--price-model", type=click.Choice(list(PRICE_MODELS)), default="uniform",
                                show_default=True, help="Prices alike, around a mid that moves, or 1..max price."),
    "window": click.option("--window", type=int,
                           help=f"Most unanswered orders in flight.  [default: none; {DEFAULT_WINDOW} at rate max]"),
    "tape": click.option("--tape", type=click.Path(dir_okay=False), help="Replay the orders in this file."),
    "speed": click.option("--speed", type=float,
                          help="How many times faster than the tape's own due times.  [default: 1]"),
    "record": click.option("--record", is_flag=True, help="Keep both streams, orders.bin and answers.bin."),
}  # fmt: skip
_RATE_OF_A_TAPE = click.option("--rate", "orders_per_s", type=Rate(),
                               help="Write when each order is due beside the tape, at so many a second.")  # fmt: skip
_TERMS = {
    "policy": click.option("--policy", type=click.Choice(list(POLICIES)), default="price-time", show_default=True,
                           help="What an incoming order trades with."),
    "max_price": click.option("--max-price", type=int, default=999, show_default=True,
                              help="Highest price the book accepts, ticks; at most 65534."),
    "packing": click.option("--packing", type=int, default=1, show_default=True,
                            help="Orders (and answers to them) in one message."),
}  # fmt: skip
_SESSION = {
    "sampling_interval": click.option("--sampling-interval", type=int, default=10_000, show_default=True,
                                      help="Sample every so many orders."),
    "timeout": click.option("--timeout", "timeout_s", type=float, default=10.0, show_default=True,
                            help="Longest wait for a peer or an answer, seconds."),
}  # fmt: skip

_BOOK = [
    click.option("--capacity", type=click.IntRange(1, MAX_CAPACITY),
                 help="Most resting orders.  [default: the book grows]"),
    click.option("--ids", "with_ids", is_flag=True, help="Keep an index of ids: cancels, and duplicates refused."),
]  # fmt: skip
_BROKER = {
    "amqp_client": click.option("--amqp-client", type=click.Choice(AMQP.options["client"]),
                                help="Over AMQP: how messages get through pika.  [default: compiled]"),
    "delivery": click.option("--delivery", type=click.Choice(AMQP.options["delivery"]),
                             help="Over AMQP: what a message survives.  [default: lossy]"),
}  # fmt: skip

nagle_option = click.option("--nagle", type=Nagle(), default="none", show_default=True,
                            help="Whose TCP_NODELAY is off: gateway, engine, reporter, broker, or all.")  # fmt: skip
topology_option = click.option("--topology", type=click.Choice(TOPOLOGIES), default="duplex", show_default=True,
                               help="Orders and answers on one TCP connection, or on one each.")  # fmt: skip
network_option = click.option("--network", default="local", show_default=True, metavar="PROFILE",
                              help="What joins the components: see exchange network list.")  # fmt: skip
capture_option = click.option("--capture", is_flag=True,
                              help="Hold the packet counters against tcpdump, which slows the run.")  # fmt: skip

pairs_option = click.option("--pairs", type=int, default=1, show_default=True,
                            help="Gateways, each with an engine, and orders, of its own; --rate, --orders and --window "
                            "are each pair's.")  # fmt: skip
reporters_option = click.option("--reporters", type=int, default=1, show_default=True,
                                help="Stats reporters, to which the pairs are dealt in turns.")  # fmt: skip
instance_option = click.option("--instance", type=click.IntRange(1, MAX_PAIRS), default=1, show_default=True,
                               help="Which of the run's pairs it is of.")  # fmt: skip

workload_options = together(list(_WORKLOAD.values()))
terms_options = together(list(_TERMS.values()))
session_options = together(list(_SESSION.values()))
broker_options = together(list(_BROKER.values()))
book_options = together(_BOOK)
policy_options = together([_TERMS["policy"], _TERMS["max_price"]])
stream_options = together([_WORKLOAD["seed"], _WORKLOAD["prices"]])
run_options = together([
    click.option("--transport", default="zeromq", show_default=True, metavar="SCHEME[://PLACE]",
                 help="What carries the messages: zeromq, amqp, tcp, memory, ...; ports, and a broker, are found "
                 "unless told where."),
    broker_options, nagle_option, topology_option, network_option, capture_option, workload_options, pairs_option,
    reporters_option, terms_options, session_options,
    click.option("--warm-up", "warm_up_s", type=float, default=0.0, show_default=True,
                 help="Seconds that analysis leaves out."),
    click.option("--cpus", type=Cpus(), default={}, help="Where components stay, as gateway=0,engine=1,engine.2=2."),
])  # fmt: skip
"""Every setting of a run."""
market_options = together([_WORKLOAD["price_model"], _TERMS["max_price"], _TERMS["policy"]])
tape_options = together([_WORKLOAD["price_model"], _TERMS["max_price"], _RATE_OF_A_TAPE, _WORKLOAD["arrivals"]])
json_option = click.option("--json", "as_json", is_flag=True, help="Machine-readable output on stdout.")
launched_option = click.option("--launched", is_flag=True, hidden=True, help="Speak to a launcher, in events.")
results_option = click.option("--results", default="results", show_default=True, metavar="DIR",
                              help="Where the run's folder is made.")  # fmt: skip
cpu_option = click.option("--cpu", type=click.IntRange(0, 4095), help="Stay on this processor.")


def run_settings(**given: Any) -> RunSettings:
    """The settings; a usage error that names the option where they are nonsense."""
    with naming_options():
        return settled(RunSettings(**_settled(given)))


@contextlib.contextmanager
def naming_options() -> Iterator[None]:
    """Around the birth of settings: what they refuse, in the words of the command line."""
    try:
        yield
    except BadSetting as error:
        raise click.UsageError(f"{_typed(error.field)} is {_short(error.value)}; allowed is {error.allowed}") from error


def _settled(given: dict[str, Any]) -> dict[str, Any]:
    """With what follows from the rest where the user did not say it."""
    if given.get("tape"):
        from runs.tape import settled_by_tape

        given |= settled_by_tape(given, _was_typed)
    if given.get("orders") is None and given.get("duration_s") is None:
        given["orders"] = 80_000
    if given.get("orders_per_s") is None and given.get("window") is None:
        given["window"] = max(DEFAULT_WINDOW, given.get("packing") or 1)
    if given.get("nagle") == ("all",):
        given["nagle"] = NAGLE_ROLES if has_broker(given.get("transport", "zeromq")) else ROLES
    return given


def _was_typed(field: str) -> bool:
    context = click.get_current_context(silent=True)
    return context is not None and context.get_parameter_source(field) is ParameterSource.COMMANDLINE


def _typed(field: str) -> str:
    """A setting's option, where the command has one for it."""
    context = click.get_current_context(silent=True)
    options = {param.name: param.opts[0] for param in context.command.params} if context else {}
    return options.get(field, field.replace("_", "-"))


def _short(value: object) -> str:
    """0 was typed, and 0.0 made of it."""
    return f"{value:.10g}".replace("e+", "e") if isinstance(value, float) else str(value)


def warn_of_rejections(settings: RunSettings) -> None:
    if settings.tape is None:
        warn_of_prices(settings.prices, settings.max_price)


def warn_of_prices(prices: tuple[int, int], max_price: int) -> None:
    """Prices outside of the book are allowed, and seldom meant."""
    low, high = prices
    if low < 1 or high > max_price:
        told = f"--prices {low}..{high} leave the book's 1..{max_price}: such orders will be rejected"
        click.echo(f"warning: {told}", err=True)
