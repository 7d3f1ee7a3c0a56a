"""Types of options with a special notation: how a value is read, and how it is written back."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from decimal import InvalidOperation
from typing import TYPE_CHECKING, Any, TypeVar

import click

from exchange.allowed import meant
from exchange.instances import role_of
from exchange.load_shape import LoadShape, is_shape
from exchange.quantities import DURATION_FORMS, MOST_DIGITS, NUMBER_FORMS, number_of, seconds_of, whole_number_of
from exchange.settings import MAX_RATE_PER_S, NAGLE_ROLES, PLACED_ROLES

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

T = TypeVar("T")

THOUSANDS = re.compile(r"0\d\d")
"""The part of a list that only the end of a number such as 8,000 can be."""
USUAL = "usual"
"""The level of Nagle's algorithm that each transport has by default."""
FIRST_WORD = re.compile("[A-Za-z]+")

MOST_PERCENT = 10_000


class SettingType(click.ParamType[T]):
    """A type whose values can be written as `convert` reads them."""

    def write(self, value: T) -> str | None:
        """Return the option's argument; None leaves the option out."""
        raise NotImplementedError


class Rate(SettingType[float | None]):
    """Orders per second, also as 8k or 1e4. None, written max, stands for no limit."""

    name = "rate"

    def __init__(self, what: str = "orders", least: float = 0.001) -> None:
        """`what` is counted; `least` is the lowest rate, as an error names it."""
        self._what = what
        self._least = least

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float | None:
        if value is None or str(value).strip().lower() == "max":
            return None
        if is_shape(str(value)):
            self.fail(
                f"{value!r} is a load over time, and constant rates belong here, as 8000: exchange run --rate and "
                "exchange bench NAME --rate take a load over time, and exchange sweep --vary "
                "arrivals=fixed,steps:0.1@5+1@5 compares some",
                param,
                ctx,
            )
        try:
            return float(number_of(str(value)))
        except InvalidOperation:
            allowed = f"give {self._what} a second, {self._least:g} to {MAX_RATE_PER_S:,}, as {NUMBER_FORMS}, or max"
            self.fail(f"{value!r} is no rate: {allowed}", param, ctx)

    def write(self, value: float | None) -> str:
        if value is None:
            return "max"
        return str(int(value)) if value.is_integer() else repr(value)


class RateOrShape(SettingType[float | LoadShape | None]):
    """A rate, or rates over time. `run_settings` makes a rate and arrivals of the latter."""

    name = "rate"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float | LoadShape | None:
        if not isinstance(value, str) or not is_shape(value):
            return Rate().convert(value, param, ctx)
        try:
            return LoadShape.parse(value)
        except ValueError as error:
            self.fail(f"{value!r} is no load: give {error}", param, ctx)

    def write(self, value: float | LoadShape | None) -> str:
        return value.text if isinstance(value, LoadShape) else Rate().write(value)


class Scheme(click.ParamType[str]):
    """A transport: its scheme in any case, or a URL of it. `zmq` and `rabbitmq` are names of `zeromq` and `amqp`."""

    name = "scheme"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:  # noqa: ARG002
        from transports.registry import ALIASES

        text = str(value)
        scheme = FIRST_WORD.match(text)
        if not scheme:
            return text
        name = scheme.group().lower()
        rest = text[len(name) :]
        variant, place_separator, place = rest.partition("://")
        return f"{ALIASES.get(name, name)}{variant.lower()}{place_separator}{place}"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        from transports.registry import known_schemes

        return click.Choice(known_schemes()).shell_complete(ctx, param, incomplete)


class Prices(SettingType[tuple[int, int]]):
    """LOW..HIGH in ticks."""

    name = "low..high"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, int]:
        if isinstance(value, tuple):
            return value
        low, _, high = str(value).partition("..")
        try:
            return whole_number_of(low), whole_number_of(high)
        except InvalidOperation:
            self.fail(f"{value!r} is no range of prices: give LOW..HIGH in ticks, as 450..549", param, ctx)

    def write(self, value: tuple[int, int]) -> str:
        return f"{value[0]}..{value[1]}"


class Cpus(SettingType[dict[str, int]]):
    """ROLE=CPU,ROLE=CPU."""

    name = "role=cpu,.."

    def __init__(self, roles: Collection[str] = PLACED_ROLES) -> None:
        self._roles = roles

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> dict[str, int]:
        if isinstance(value, dict):
            return value
        example = ",".join(f"{role}={cpu}" for cpu, role in enumerate([*self._roles][:2]))
        usage = f"give ROLE=CPU pairs of {', '.join(self._roles)}, each once, as {example}"
        cpus: dict[str, int] = {}
        for part in str(value).split(","):
            name, _, cpu = part.partition("=")
            if role_of(name) not in self._roles:
                self.fail(f"{part!r} places no component: {usage}", param, ctx)
            if name in cpus:
                self.fail(f"{value!r} places {name} more than once: {usage}", param, ctx)
            try:
                cpus[name] = whole_number_of(cpu)
            except InvalidOperation:
                self.fail(f"{part!r} names no CPU: {usage}", param, ctx)
        return cpus

    def write(self, value: dict[str, int]) -> str | None:
        return ",".join(f"{name}={cpu}" for name, cpu in value.items()) or None


class Nagle(SettingType[tuple[str, ...]]):
    """ROLE,ROLE, all or none. The roles, and so the meaning of `all`, depend on the transport: see `run_settings`."""

    name = "role,.."

    def __init__(self, roles: Collection[str] = ()) -> None:
        """`roles` are the only allowed ones; empty if the transport decides."""
        self._roles = roles

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, ...]:
        if isinstance(value, tuple):
            return value
        words = str(value).lower()
        roles = () if words == "none" else tuple(part.strip() for part in words.split(","))
        if self._roles:
            for role in sorted(set(roles) - set(self._roles)):
                self.fail(f"{role!r} is none of {', '.join(self._roles)}{meant(role, self._roles)}", param, ctx)
        return roles

    def write(self, value: tuple[str, ...]) -> str:
        return ",".join(value) or "none"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return Listed(click.Choice((*NAGLE_ROLES, "all", "none"))).shell_complete(ctx, param, incomplete)


class KeysFolder(SettingType[str | None]):
    """The absolute path of a folder of keys. None, which a user writes as none, stands for no keys."""

    name = "dir"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str | None:  # noqa: ARG002
        return None if value in (None, "none") else os.path.abspath(value)

    def write(self, value: str | None) -> str | None:
        return value


class OneOf(click.Choice[str]):
    """One of some words, in any case. An error suggests the nearest word."""

    def __init__(self, words: Sequence[str]) -> None:
        super().__init__(words, case_sensitive=False)

    def get_invalid_choice_message(self, value: Any, ctx: click.Context | None) -> str:
        return super().get_invalid_choice_message(value, ctx).removesuffix(".") + meant(value, self.choices)


class Suggested(click.ParamType[str]):
    """Any text. A shell completes it to the words that `words` returns."""

    name = "text"

    def __init__(self, words: Callable[[], Iterable[str]]) -> None:
        self._words = words

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG002
        from click.shell_completion import CompletionItem

        return [CompletionItem(word) for word in self._words() if word.startswith(incomplete)]


class Declared(click.ParamType[str]):
    """One of the words that a transport declares for an option. The transport is imported only when needed."""

    name = "choice"

    def __init__(self, scheme: str, option: str) -> None:
        self._scheme = scheme
        self._option = option

    @property
    def _choice(self) -> OneOf:
        from transports.registry import transport_of

        return OneOf(transport_of(self._scheme).words(self._option))

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        return self._choice.convert(value, param, ctx)

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str | None:
        return self._choice.get_metavar(param, ctx)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return self._choice.shell_complete(ctx, param, incomplete)


class Count(click.ParamType[int]):
    """A whole number, also as 8,000, 80k, 1M or 1e9."""

    name = "number"

    def __init__(self, least: int | None = None, most: int | None = None) -> None:
        self._range = click.IntRange(least, most)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        number = _whole_number(str(value))
        if number is None:
            self.fail(f"{value!r} is no whole number: give one, as 1000000, 1,000,000, 1M or 1e6", param, ctx)
        return self._range.convert(number, param, ctx)


def _whole_number(text: str) -> int | None:
    """Return the number; None if the text is no whole number, or has more than MOST_DIGITS digits."""
    try:
        number = number_of(text)
    except InvalidOperation:
        return None
    if number.adjusted() >= MOST_DIGITS or number != int(number):
        return None
    return int(number)


class Number(click.FloatRange):
    """A number within a range, also as 8,000, 8k or 1e4."""

    noun = "number"
    forms = NUMBER_FORMS

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        try:
            number = self._read(str(value))
        except InvalidOperation:
            self.fail(f"{value!r} is no {self.noun}: give one, as {self.forms}", param, ctx)
        return float(super().convert(number, param, ctx))

    def _read(self, text: str) -> float:
        """Read the number. InvalidOperation if the text is none."""
        return float(number_of(text))


class Seconds(Number):
    """Seconds within a range, also with a unit: 2s, 500ms, 200us, 1m or 1h."""

    name = "seconds"
    noun = "duration"
    forms = DURATION_FORMS

    def _read(self, text: str) -> float:
        return seconds_of(text)


class Duration(SettingType[float]):
    """Seconds of a setting, also with a unit; the setting checks their range."""

    name = "seconds"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        try:
            return seconds_of(str(value))
        except InvalidOperation:
            self.fail(f"{value!r} is no duration: give seconds, or a unit, as {DURATION_FORMS}", param, ctx)

    def write(self, value: float | None) -> str | None:
        return None if value is None else str(value)


class PlainNumber(SettingType[float]):
    """A number of a setting; the setting checks its range."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        try:
            return float(number_of(str(value)))
        except InvalidOperation:
            self.fail(f"{value!r} is no number: give one, as {NUMBER_FORMS}", param, ctx)

    def write(self, value: float | None) -> str | None:
        return None if value is None else str(value)


class Percent(click.ParamType[float]):
    """A share above 0, written in percent: 10%, or 10. The value is 0.1."""

    name = "percent"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        allowed = f"give percent above 0, to {MOST_PERCENT:,}, as 10%"
        try:
            percent = float(number_of(str(value).strip().removesuffix("%")))
        except InvalidOperation:
            self.fail(f"{value!r} is no share: {allowed}", param, ctx)
        if not 0 < percent <= MOST_PERCENT:
            self.fail(f"{value!r} is no share: {allowed}", param, ctx)
        return percent / 100


class Listed(click.ParamType[list[Any]]):
    """Values of one type, with commas between them."""

    name = "list"

    def __init__(self, of: click.ParamType[Any]) -> None:
        self._of = of

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> list[Any]:
        if isinstance(value, list):
            return value
        parts = [part.strip() for part in str(value).split(",")]
        for part in parts:
            if THOUSANDS.fullmatch(part):
                self.fail(f"{value!r}: a comma ends a value here, so write 8,000 as 8000 or 8k", param, ctx)
        return [self._of.convert(part, param, ctx) for part in parts if part]

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Complete the last value of the list."""
        from click.shell_completion import CompletionItem

        before, comma, last = incomplete.rpartition(",")
        items = self._of.shell_complete(ctx, param, last)
        return [CompletionItem(f"{before}{comma}{item.value}", help=item.help) for item in items]
