"""Declarations of a run's settings: one call of `setting` has a setting's default, check, option and help.

Everything that a setting needs follows from its declaration: the check when settings are made, the option of `exchange
run`, the option of each component that gets the setting, and its place in the help.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, Protocol

from exchange.allowed import BadSetting, between, one_of, whole

RUN = frozenset({"run"})
GATEWAY = frozenset({"gateway"})
ENGINE = frozenset({"engine"})
REPORTER = frozenset({"reporter"})
SUBSCRIBER = frozenset({"subscriber"})
RUN_AND_GATEWAY = RUN | GATEWAY
"""Commands with a setting of the load."""
RUN_GATEWAY_AND_ENGINE = RUN | GATEWAY | ENGINE
"""Commands with a setting on which gateway and engine must agree."""
RUN_AND_REPORTER = RUN | REPORTER
"""Commands with a number of components."""


class Check(Protocol):
    """A check of a value by itself."""

    def check(self, name: str, value: Any) -> None:
        """BadSetting, with the setting's name, if the value is not allowed."""


@dataclass(frozen=True)
class WholeNumber:
    """Allows whole numbers from `least` to `most`."""

    least: int
    most: int

    def check(self, name: str, value: Any) -> None:
        whole(name, value, self.least, self.most)


@dataclass(frozen=True)
class NumberBetween:
    """Allows numbers from `least` to `most`."""

    least: float
    most: float

    def check(self, name: str, value: Any) -> None:
        between(name, value, self.least, self.most)


@dataclass(frozen=True)
class OneOfWords:
    """Allows some words."""

    words: tuple[str, ...]

    def check(self, name: str, value: Any) -> None:
        one_of(name, value, self.words)


@dataclass(frozen=True)
class Text:
    """Allows any text of at least `least` characters. `allowed` describes such a text in an error."""

    allowed: str
    least: int = 0

    def check(self, name: str, value: Any) -> None:
        if not isinstance(value, str) or len(value) < self.least:
            raise BadSetting(name, value, self.allowed)


@dataclass(frozen=True)
class Switch:
    """Allows True and False; its option is a flag."""

    def check(self, name: str, value: Any) -> None:
        if not isinstance(value, bool):
            raise BadSetting(name, value, "True or False")


@dataclass(frozen=True)
class CheckedLater:
    """Allows anything here: RunSettings checks the value together with other settings."""

    def check(self, name: str, value: Any) -> None:
        pass


@dataclass(frozen=True, kw_only=True)
class Setting:
    """The declaration of a setting."""

    option: str
    """The option's name, as --packing."""
    commands: frozenset[str]
    """The commands that have the option. The launcher passes the setting on to the components among them."""
    heading: str
    """The heading under which the help has the option: Load, Transport, Engine, Measuring or Output."""
    help: str
    check: Check
    default: Any
    may_be_none: bool = False
    """Whether None is allowed besides the values that `check` allows. If the default is None, it always is."""
    has_fixed_default: bool = True
    """False if the option has no fixed default, since the default follows from other options; the help says how."""
    metavar: str | None = None
    other_name: str | None = None
    """A second name of the option."""


def setting(
    *,
    default: Any,
    check: Check,
    option: str,
    commands: frozenset[str],
    heading: str,
    help: str,
    may_be_none: bool = False,
    has_fixed_default: bool = True,
    metavar: str | None = None,
    other_name: str | None = None,
) -> Any:
    """Return a field for a dataclass of settings. The arguments are the fields of `Setting`."""
    declaration = Setting(
        option=option,
        commands=commands,
        heading=heading,
        help=help,
        check=check,
        default=default,
        may_be_none=may_be_none or default is None,
        has_fixed_default=has_fixed_default,
        metavar=metavar,
        other_name=other_name,
    )
    if isinstance(default, dict):
        return field(default_factory=default.copy, metadata={"declaration": declaration})
    return field(default=default, metadata={"declaration": declaration})


def declared_settings(settings: type) -> dict[str, Setting]:
    """Return the declarations of all settings of a dataclass, by field."""
    return {setting_field.name: setting_field.metadata["declaration"] for setting_field in fields(settings)}
