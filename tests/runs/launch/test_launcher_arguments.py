"""What a launcher tells its gateway is what was asked for, whichever way orders come."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cli.gateway import command
from exchange.instances import named
from exchange.settings import RunSettings
from gateway.seeded_orders import SeededOrders
from runs.launch.launcher import component_arguments
from runs.launch.places import Places
from runs.lineup import Lineup
from runs.options import run_settings

KEPT_BY_THE_LAUNCHER = {"cpus", "warm_up_s", "transport", "pairs", "reporters"}


def as_understood(settings: RunSettings) -> RunSettings:
    """By a gateway that is given the arguments."""
    places = Places({1: "tcp://127.0.0.1:1"}, {1: "tcp://127.0.0.1:2"})
    arguments = component_arguments(Path("results/x"), settings, places)["gateway"]
    names = {field.name for field in fields(RunSettings)} - KEPT_BY_THE_LAUNCHER
    with command.make_context("gateway", arguments) as context:
        return run_settings(**{name: value for name, value in context.params.items() if name in names})


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"orders_per_s": None, "window": 500, "orders": None, "duration_s": 3.0},
        {"arrivals": "poisson", "price_model": "normal", "prices": (10, 20), "seed": 2**64 - 1},
        {"arrivals": "bursts:100", "price_model": "wide", "max_price": 5000, "packing": 7},
        {"arrivals": "ramp:0.1..1", "orders_per_s": 1234.5678901234567, "record": True},
    ],
)
def test_a_workload_reaches_the_gateway_as_it_was_asked_for(given: dict[str, Any]) -> None:
    settings = RunSettings(**given)
    assert as_understood(settings) == settings


@pytest.mark.parametrize("speed", [None, 3.0])
def test_a_tape_reaches_the_gateway_with_its_speed(tmp_path: Path, speed: float | None) -> None:
    tape = tmp_path / "tape.bin"
    tape.write_bytes(SeededOrders(1, (450, 549)).records(1, 50))
    np.array(range(0, 50_000, 1_000), "<u8").tofile(tape.with_suffix(".due"))
    settings = run_settings(tape=str(tape), speed=speed, orders=40)
    assert settings.arrivals == "recorded"
    assert as_understood(settings) == settings
    at_a_rate = RunSettings(tape=str(tape), orders=40, orders_per_s=500.0)
    assert as_understood(at_a_rate) == at_a_rate


def test_pairs_are_dealt_to_the_reporters_in_turns_and_told_who_they_are() -> None:
    settings = RunSettings(pairs=3, reporters=2, cpus={"engine": 1, "engine.3": 0})
    places = Places({k: f"tcp://127.0.0.1:{k}" for k in (1, 2, 3)}, {k: f"tcp://127.0.0.1:9{k}" for k in (1, 2)})
    arguments = component_arguments(Path("results/x"), settings, places)
    assert list(arguments) == Lineup.of(settings).names
    told = {name: dict(zip(words[::2], words[1::2], strict=False)) for name, words in arguments.items()}
    for pair, reporter in ((1, 1), (2, 2), (3, 1)):
        for role, place in (("gateway", "--engine"), ("engine", "--listen")):
            words = told[named(role, pair)]
            assert (words["--instance"], words[place]) == (str(pair), places.engines[pair])
            assert words["--reporter"] == places.reporters[reporter]
    assert [told[name].get("--cpu") for name in ("engine", "engine.2", "engine.3")] == ["1", "1", "0"]
    assert [told[name]["--instance"] for name in ("reporter", "reporter.2")] == ["1", "2"]
    assert {(told[name]["--pairs"], told[name]["--reporters"]) for name in ("reporter", "reporter.2")} == {("3", "2")}
