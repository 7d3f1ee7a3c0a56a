"""Types of options with a special notation: how a value is read, and how it is written back."""

from __future__ import annotations

import contextlib
import math
import os
import re
from collections.abc import Callable, Collection, Iterable
from decimal import Decimal, InvalidOperation, Overflow
from typing import TYPE_CHECKING, Any, TypeVar

import click

from exchange.allowed import meant
from exchange.instances import role_of
from exchange.settings import MAX_RATE_PER_S, NAGLE_ROLES

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

T = TypeVar("T")

FACTORS = {"k": Decimal(1_000), "M": Decimal(1_000_000), "G": Decimal(1_000_000_000)}
USUAL = "usual"
"""The level of Nagle's algorithm that each transport has by default."""
FIRST_WORD = re.compile("[a-z]+")

MOST_DIGITS = 20
"""The most digits of a whole number. No bound has more; an error message can still print such a number."""


class SettingType(click.ParamType[T]):
    """A type whose values can be written as `convert` reads them."""

    def write(self, value: T) -> str | None:
        """Return the option's argument; None leaves the option out."""
        raise NotImplementedError


def number_of(text: str) -> Decimal:
    """Read 8000, 8k, 1e4 or 1.5M. InvalidOperation if the text is no number, or the number is too large."""
    factor = FACTORS.get(text[-1:])
    try:
        return Decimal(text[:-1]) * factor if factor else Decimal(text)
    except Overflow as error:
        raise InvalidOperation from error


class Rate(SettingType[float | None]):
    """Orders per second, also as 8k or 1e4. None, written max, stands for no limit."""

    name = "rate"

    def __init__(self, what: str = "orders", least: float = 0.001) -> None:
        """`what` is counted; `least` is the lowest rate, as an error names it."""
        self._what = what
        self._least = least

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float | None:
        if value is None or value == "max":
            return None
        try:
            return float(number_of(str(value)))
        except (InvalidOperation, ValueError):
            allowed = f"give {self._what} a second, {self._least:g} to {MAX_RATE_PER_S:,}, as 8000 or 8k, or max"
            self.fail(f"{value!r} is no rate: {allowed}", param, ctx)

    def write(self, value: float | None) -> str:
        if value is None:
            return "max"
        return str(int(value)) if value.is_integer() else repr(value)


class Scheme(click.ParamType[str]):
    """A transport: its scheme, or a URL of it. `zmq` and `rabbitmq` are other names of `zeromq` and `amqp`."""

    name = "scheme"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:  # noqa: ARG002
        from transports.registry import ALIASES

        text = str(value)
        scheme = FIRST_WORD.match(text)
        if not scheme:
            return text
        name = scheme.group()
        return ALIASES.get(name, name) + text[len(name) :]

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        from transports.registry import known_schemes

        return click.Choice(known_schemes()).shell_complete(ctx, param, incomplete)


class Prices(SettingType[tuple[int, int]]):
    """LOW..HIGH in ticks."""

    name = "low..high"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, int]:
        if isinstance(value, tuple):
            return value
        low, dots, high = str(value).partition("..")
        if not (dots and low.isdecimal() and high.isdecimal()):
            self.fail(f"{value!r} is no range of prices: give LOW..HIGH in ticks, as 450..549", param, ctx)
        return int(low), int(high)

    def write(self, value: tuple[int, int]) -> str:
        return f"{value[0]}..{value[1]}"


class Cpus(SettingType[dict[str, int]]):
    """ROLE=CPU,ROLE=CPU."""

    name = "role=cpu,.."

    def __init__(self, roles: Collection[str] = NAGLE_ROLES) -> None:
        self._roles = roles

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> dict[str, int]:
        if isinstance(value, dict):
            return value
        example = ",".join(f"{role}={cpu}" for cpu, role in enumerate([*self._roles][:2]))
        usage = f"give ROLE=CPU pairs of {', '.join(self._roles)}, each once, as {example}"
        cpus: dict[str, int] = {}
        for part in str(value).split(","):
            name, _, cpu = part.partition("=")
            if role_of(name) not in self._roles or not cpu.isdecimal():
                self.fail(f"{part!r} places no component: {usage}", param, ctx)
            if name in cpus:
                self.fail(f"{value!r} places {name} more than once: {usage}", param, ctx)
            cpus[name] = int(cpu)
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
        roles = () if value == "none" else tuple(part.strip() for part in str(value).split(","))
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
    """One of some words. An error suggests the nearest word."""

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
    """A whole number, also as 80k, 1M or 1e9."""

    name = "number"

    def __init__(self, least: int | None = None, most: int | None = None) -> None:
        self._range = click.IntRange(least, most)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        number = _whole_number(str(value))
        if number is None:
            self.fail(f"{value!r} is no whole number: give one, as 1000000, 1M or 1e6", param, ctx)
        return self._range.convert(number, param, ctx)


def _whole_number(text: str) -> int | None:
    """Return the number; None if the text is no whole number, or has more than MOST_DIGITS digits."""
    try:
        number = number_of(text)
    except InvalidOperation:
        return None
    if not number.is_finite() or number.adjusted() >= MOST_DIGITS or number != int(number):
        return None
    return int(number)


class Number(click.FloatRange):
    """A number within a range, also as 8k or 1e4. nan is refused here, since click's range accepts it."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        with contextlib.suppress(InvalidOperation):
            value = float(number_of(str(value)))
        number = float(super().convert(value, param, ctx))
        if math.isnan(number):
            self.fail(f"{number} is no number: give one from {self.min:g} to {self.max:g}", param, ctx)
        return number


class Listed(click.ParamType[list[Any]]):
    """Values of one type, with commas between them."""

    name = "list"

    def __init__(self, of: click.ParamType[Any]) -> None:
        self._of = of

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> list[Any]:
        if isinstance(value, list):
            return value
        return [self._of.convert(part.strip(), param, ctx) for part in str(value).split(",") if part.strip()]

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Complete the last value of the list."""
        from click.shell_completion import CompletionItem

        before, comma, last = incomplete.rpartition(",")
        items = self._of.shell_complete(ctx, param, last)
        return [CompletionItem(f"{before}{comma}{item.value}", help=item.help) for item in items]
