"""Options of benchmarks: sizes and numbers as a user types them, and what `--quick` puts in place of defaults."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import InvalidOperation
from typing import Any

import click

from exchange.load_shape import LoadShape, is_shape
from exchange.quantities import SIZE_FORMS, bytes_of, whole_number_of
from exchange.settings import MAX_RATE_PER_S
from exchange_simulation.launching.option_table import NOTATIONS
from exchange_simulation.launching.option_types import Count, Cpus, Listed, Nagle, Rate, RateOrShape, Scheme, Seconds
from exchange_simulation.launching.options import (
    broker_options,
    json_option,
    options_for,
    results_option,
    together,
)
from exchange_simulation.launching.transport_checks import settings_that_none_has
from exchange_simulation.launching.typed_settings import was_typed
from exchange_simulation.messaging.benchmark import QUICK_HELP, BenchmarkDefinition
from exchange_simulation.messaging.point import LOCAL, NETWORK, Settings
from exchange_simulation.messaging.roles import HOSTS

LARGEST = 1 << 20
"""The size of the papers' largest message; the buffers of every transport have room for it."""
LEAST_RATE_PER_S = 0.1
QUICK_REPEATS = 3
MOST_STEPS = 100
"""The largest number of steps of a load over time: each receiver has buckets, and each table a row, for every step."""
OPTIONS_OF_OUTPUT = {"results", "name", "as_json"}
"""Options that choose the place and the form of the outcome, and not the measurement."""


def sizes_of(text: str) -> tuple[int, ...]:
    """Parse `256`, `8,64,1KiB`, or the doubling range `1B..1MiB`; returns bytes, ascending. BadParameter otherwise."""
    low, dots, high = text.partition("..")
    if dots:
        return _doubling(size_of(low), size_of(high), text)
    return _in_order(text, "size", [size_of(part) for part in text.split(",")])


def _doubling(low: int, high: int, text: str) -> tuple[int, ...]:
    """Return the sizes from low to high, each twice the size before it. BadParameter if the range has no such sizes."""
    if low > high:
        raise click.BadParameter(f"{text!r} goes down: give the smaller size first")
    for end in (low, high):
        is_power_of_two = end & (end - 1) == 0
        if not is_power_of_two:
            raise click.BadParameter(f"{text!r}: a range doubles, so its ends are powers of two, and {end} is none")
    sizes = []
    size = low
    while size <= high:
        sizes.append(size)
        size *= 2
    return tuple(sizes)


def size_of(text: str) -> int:
    """Parse `64`, `1KiB` or the like; returns bytes. BadParameter if it is no size, or too large a size."""
    try:
        size = bytes_of(text)
    except InvalidOperation as error:
        raise click.BadParameter(f"{text.strip()!r} is no size: give bytes, as {SIZE_FORMS}") from error
    if not 1 <= size <= LARGEST:
        raise click.BadParameter(f"{text.strip()} is {size:,} bytes; a message has 1 to {LARGEST:,}")
    return size


def numbers_of(text: str, noun: str, low: int, high: int) -> tuple[int, ...]:
    """Parse whole numbers, from small to large: a list, as 1,2,4,8, or a range, as 1..8. BadParameter otherwise."""
    first, dots, last = text.partition("..")
    words = [first, last] if dots else text.split(",")
    try:
        values = [whole_number_of(word.strip()) for word in words]
    except InvalidOperation as error:
        raise click.BadParameter(f"{text!r} is no list of {noun}: give whole numbers, as 1,2,4,8, or 1..8") from error
    numbers: Sequence[int]
    if dots:
        if values[0] > values[1]:
            raise click.BadParameter(f"{text!r} goes down: give the smaller number first")
        numbers = range(values[0], values[1] + 1)
    else:
        numbers = _in_order(text, "number", values)
    if numbers[0] < low or numbers[-1] > high:
        raise click.BadParameter(f"{text!r}: {noun} are {low:,} to {high:,}")
    return tuple(numbers)


def _in_order(text: str, noun: str, numbers: list[int]) -> tuple[int, ...]:
    """The numbers of a text. BadParameter unless each is larger than the one before it."""
    if numbers != sorted(set(numbers)):
        raise click.BadParameter(f"{text!r} is not in order: give each {noun} once, from small to large")
    return tuple(numbers)


class Parsed(click.ParamType[Any]):
    """Values that a function parses; a default may be parsed already."""

    def __init__(self, name: str, parse: Callable[[str], Any]) -> None:
        self.name = name
        self._parse = parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: ARG002
        return self._parse(value) if isinstance(value, str) else value


SIZE = Parsed("size", size_of)


class EachOnce(Listed):
    """One or more values of one type, each once, with commas between them."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> list[Any]:
        values = super().convert(value, param, ctx)
        if not values or len(set(values)) < len(values):
            self.fail(f"{value!r}: give one or more, each once, with commas between them", param, ctx)
        return values


def sizes_option(default: str) -> click.Option:
    """Return the option --sizes."""
    about = "Message sizes: a range that doubles, or a list, as 8,64,1KiB."
    return click.Option(
        ["--sizes"],
        type=Parsed("sizes", sizes_of),
        default=default,
        show_default=True,
        metavar="SIZE..SIZE",
        help=about,
    )


def numbers_option(
    option: str,
    *,
    noun: str,
    most: int,
    default: str,
    metavar: str,
    help: str,
    least: int = 1,
) -> click.Option:
    """Return an option that takes whole numbers from `least` to `most`; `noun` names them in errors."""
    parsed = Parsed("numbers", lambda text: numbers_of(text, noun, least, most))
    return click.Option([option], type=parsed, default=default, show_default=True, metavar=metavar, help=help)


def rates_of(text: str) -> tuple[float | str | None, ...]:
    """Parse rates, messages a second, each once; None, written max, is as fast as it goes. BadParameter otherwise.

    A load over time, as 1000@10s,8000@10s, is one value: the text as `LoadShape.parse` reads it.
    """
    if is_shape(text):
        shape = RateOrShape().convert(text, None, None)
        assert isinstance(shape, LoadShape)
        steps = len(shape.segments)
        if steps > MOST_STEPS:
            raise click.BadParameter(
                f"a load of {steps:,} steps is too long for a benchmark, whose tables have a row for each: give "
                f"{MOST_STEPS} or fewer, as ramps, or offer it by exchange run --rate"
            )
        for segment in shape.segments:
            _check_rates(segment.first, segment.last)
        return (shape.typed,)
    rate_type = Rate("messages", LEAST_RATE_PER_S)
    rates = [rate_type.convert(word.strip(), None, None) for word in text.split(",")]
    if len(set(rates)) < len(rates):
        raise click.BadParameter(f"{text!r} names a rate twice")
    _check_rates(*(rate for rate in rates if rate is not None))
    return tuple(rates)


def _check_rates(*rates: float) -> None:
    for rate in rates:
        if not LEAST_RATE_PER_S <= rate <= MAX_RATE_PER_S:
            raise click.BadParameter(f"{rate:g} is no rate: give {LEAST_RATE_PER_S:g} to {MAX_RATE_PER_S:,}, or max")


RATES = click.Option(
    ["--rate", "rates"],
    type=Parsed("rates", rates_of),
    default="max",
    show_default=True,
    metavar="RATE[,...]|LOAD",
    help="Messages a second of each publisher, or thread that asks; max; or one load over time, as 1000@10s,8000@10s.",
)
SECONDS = click.Option(
    ["--seconds"],
    type=Seconds(0.1, 3600),
    help=(
        "How long messages are offered at a rate.  "
        "[default: 5, or as long as 100 messages take; 1 with --quick; a load over time: its own length]"
    ),
)
SIZES = sizes_option("1B..1MiB")
COUNT = click.Option(
    ["--count"],
    type=Count(2, 1 << 39),
    help="Messages of each cell.  [default: fewer of large ones, and over a broker]",
)
SAMPLE_SECONDS = Seconds(0.01, 3600)
hosts_options = options_for("hosts", "insecure")
timeout_option = click.option(
    "--timeout",
    "timeout_s",
    type=Seconds(0.1, 3600),
    default=10.0,
    show_default=True,
    help="Longest wait without a message, seconds.",
)
redo_option = click.option(
    "--redo-noisy/--keep-noisy",
    default=True,
    show_default=True,
    help="Measure again if others took more than 5% of all processors meanwhile.",
)
networks_option = click.option(
    "--network",
    type=EachOnce(NOTATIONS[NETWORK]),
    default=LOCAL,
    show_default=True,
    metavar="PROFILE[,...]",
    help="What joins the roles; several are measured in turns, a line each: see exchange network list.",
)
nagle_option = click.option(
    "--nagle",
    type=Nagle((*HOSTS, "broker")),
    default="none",
    show_default=True,
    help="Roles with Nagle's algorithm on: publisher, consumer, broker.",
)
cpus_option = click.option(
    "--cpus",
    type=Cpus((*HOSTS, "broker")),
    default={},
    help="Where roles stay, as publisher=0,consumer=1,broker=1.",
)


def parameters(benchmark: BenchmarkDefinition | None) -> list[click.Parameter]:
    """All options of the command of a benchmark, or of the suite, for which `benchmark` is None.

    The suite has no defaults for transports and repeats, since those of its benchmarks differ.
    """
    transports = benchmark.transports if benchmark else None
    repeats = benchmark.repeats if benchmark else None
    options_of_benchmark = benchmark.options if benchmark else ()
    options_left_out = benchmark.options_left_out if benchmark else ()
    transport = click.Option(
        ["--transport"],
        type=EachOnce(Scheme()),
        default=transports,
        metavar="SCHEME[,...]",
        show_default=transports is not None,
        help="Transports to measure.",
    )
    common = together(
        [
            click.option(
                "--repeats",
                type=click.IntRange(1, 10_000),
                default=repeats,
                show_default=repeats is not None or "each benchmark's",
                help="How often each cell is measured.",
            ),
            redo_option,
            click.option("--quick", is_flag=True, help=benchmark.quick_help if benchmark else QUICK_HELP),
            timeout_option,
            broker_options,
            networks_option,
            nagle_option,
            cpus_option,
            hosts_options,
            results_option,
            click.option("--name", help="The folder in DIR.  [default: time and benchmark]"),
            json_option,
        ]
    )
    shared_options = [option for option in _options_of(common) if option.name not in options_left_out]
    return [transport, *options_of_benchmark, *shared_options]


def _options_of(decorator: Callable[[Callable[..., Any]], Callable[..., Any]]) -> list[click.Parameter]:
    """Return the options that a decorator adds. click gives options to commands only, so a command is made for them."""
    command = click.command()(decorator(lambda: None))
    return command.params


def settings_of(benchmark: BenchmarkDefinition, typed: Mapping[str, Any]) -> Settings:
    """The options' values; with `--quick`, its values take the place of defaults."""
    settings = dict(typed)
    if typed["quick"]:
        quick_values = {"repeats": QUICK_REPEATS, **benchmark.quick_values}
        for name, value in quick_values.items():
            if not was_typed(name):
                settings[name] = value
    return settings


def settings_from_words(benchmark: BenchmarkDefinition, words: Sequence[str]) -> tuple[Settings, set[str]]:
    """Parse the words after `exchange bench NAME`; returns (settings, names of those that the words give)."""
    command = click.Command(benchmark.name, params=parameters(benchmark))
    with command.make_context(benchmark.name, [*words]) as context:
        values = {name: value for name, value in context.params.items() if name not in OPTIONS_OF_OUTPUT}
        typed_names = {name for name in values if was_typed(name)}
        return settings_of(benchmark, values), typed_names


def suite_settings_from_words(words: Sequence[str]) -> Settings:
    """Parse the words after `exchange bench suite`."""
    command = click.Command("suite", params=parameters(None))
    with command.make_context("suite", [*words]) as context:
        return {name: value for name, value in context.params.items() if name not in OPTIONS_OF_OUTPUT}


def settings_again(record: Mapping[str, Any], benchmark: BenchmarkDefinition | None) -> Settings:
    """The settings with which a recorded benchmark, or suite, is measured again.

    Lists become tuples, and options that the user left open have their defaults. A setting that all transports ignored
    is left out, since such a setting is refused now.
    """
    given: dict[str, Any] = {}
    for name, value in record["settings"].items():
        given[name] = tuple(value) if isinstance(value, list) else value
    transports = given.get("transport") or ()
    if isinstance(transports, str):
        transports = (transports,)
    if transports:
        for name in settings_that_none_has(given, transports):
            del given[name]
    if benchmark is None:
        return given
    defaults, _ = settings_from_words(benchmark, [])
    return {**defaults, **given}
