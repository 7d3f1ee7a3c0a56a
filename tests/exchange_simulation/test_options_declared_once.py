"""An option of `exchange run` is declared once, in exchange/settings.py; these are the places that name it again."""

from __future__ import annotations

from dataclasses import fields
from typing import get_type_hints

import pytest

from exchange.settings import DECLARED, TRANSPORT_SETTINGS, RunSettings
from exchange_simulation.cli.serve.site import FIRST_FIELDS
from exchange_simulation.experiments.sweep.keys import HELP_OF_SWEEP, LIST_KEYS, SINGLE_RUN_KEYS
from exchange_simulation.launching.option_table import NOTATIONS
from exchange_simulation.measuring import RunOptions
from transports.registry import built_in

OPTION_NAMES = {declared.option.removeprefix("--") for declared in DECLARED.values()}


def test_the_python_api_lists_every_option_for_type_checkers() -> None:
    listed = {name.replace("_", "-") for name in get_type_hints(RunOptions)}
    assert listed == OPTION_NAMES, "RunOptions in exchange_simulation/measuring.py is the one copy that must be whole"


def test_every_setting_has_a_declaration() -> None:
    assert list(DECLARED) == [field.name for field in fields(RunSettings)]


@pytest.mark.parametrize(
    "named",
    [NOTATIONS, TRANSPORT_SETTINGS, FIRST_FIELDS, SINGLE_RUN_KEYS],
    ids=["notations", "settings of a transport", "first in the form of serve", "settings no sweep takes"],
)
def test_lists_of_special_settings_name_settings_that_exist(named: object) -> None:
    assert set(named) <= set(DECLARED)  # type: ignore[call-overload]


@pytest.mark.parametrize("named", [LIST_KEYS, HELP_OF_SWEEP], ids=["with commas", "help of sweep"])
def test_lists_of_special_options_name_options_that_exist(named: object) -> None:
    assert set(named) <= OPTION_NAMES  # type: ignore[call-overload]


def test_transports_name_settings_that_exist() -> None:
    for transport in built_in().values():
        assert set(transport.run_settings) <= set(TRANSPORT_SETTINGS)
