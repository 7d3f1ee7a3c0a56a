"""Command lines that are made of settings say all of them: of a run, and of each component that is launched."""

from __future__ import annotations

from dataclasses import asdict, fields
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exchange.instances import named, role_of
from exchange.settings import NAGLE_ROLES, ROLES, RunSettings
from exchange.workload import PRICE_MODELS
from exchange_simulation.launching.launch.launcher import component_arguments
from exchange_simulation.launching.launch.places import Places
from exchange_simulation.launching.lineup import Lineup
from exchange_simulation.launching.option_table import TABLE, arguments
from exchange_simulation.launching.typed_settings import run_settings, without_default_rate
from gateway.seeded_orders import SeededOrders

OVER_AMQP = {
    "transport": "amqp",
    "amqp_client": st.sampled_from([None, "compiled", "pika"]),
    "delivery": st.sampled_from([None, "lossy", "acked", "confirmed", "durable"]),
    "nagle": NAGLE_ROLES,
}


@st.composite
def typed(draw: st.DrawFn) -> dict[str, Any]:
    """Options of `exchange run` that go together, as click hands them over."""
    some = draw(st.sampled_from([{}, {"transport": "zeromq?calls=plain", "topology": "simplex"}, OVER_AMQP]))
    chosen = {name: draw(value) if isinstance(value, st.SearchStrategy) else value for name, value in some.items()}
    nagle = draw(st.lists(st.sampled_from(chosen.pop("nagle", ROLES)), unique=True).map(tuple))
    rate = draw(st.none() | st.floats(0.001, 1e8))
    arrivals = "fixed" if rate is None else draw(st.sampled_from(["fixed", "poisson", "bursts:100", "ramp:0.1..1"]))
    low = draw(st.integers(1, 500))
    packing = draw(st.integers(1, 1000))
    pairs = draw(st.integers(1, 16))
    length = draw(st.sampled_from([{"orders": 17}, {"duration_s": 0.25}, {"orders": 2**32 - 1, "duration_s": 3.0}]))
    cpus = st.dictionaries(st.sampled_from([*ROLES, named("gateway", pairs)]), st.integers(0, 4095))
    model = draw(st.sampled_from(sorted(PRICE_MODELS)))
    own_prices = {"prices": (low, low + draw(st.integers(0, 400)))} if model != "wide" else {}
    return {
        **chosen,
        **length,
        **own_prices,
        "nagle": nagle,
        "orders_per_s": rate,
        "arrivals": arrivals,
        "seed": draw(st.integers(0, 2**64 - 1)),
        "price_model": model,
        "packing": packing,
        "pairs": pairs,
        "window": draw(st.none() | st.integers(packing, 10**6)),
        "reporters": draw(st.integers(1, pairs)),
        "policy": draw(st.sampled_from(["price-time", "exact-price"])),
        "max_price": draw(st.integers(1000, 65534)),
        "sampling_interval": draw(st.integers(1, 2**32 - 1)),
        "warm_up_s": draw(st.floats(0, 1e7)),
        "timeout_s": draw(st.floats(0.1, 1e6)),
        "cpus": draw(cpus),
        "record": draw(st.booleans()),
        "capture": draw(st.booleans()),
        "network": draw(st.sampled_from(["local", "gige?delay_us=80"])),
    }


def understood(role: str, words: list[str]) -> dict[str, Any]:
    """The settings' fields that a role's command reads from its command line."""
    command = import_module(f"exchange_simulation.cli.{role}").command
    mine = {option.field for option in TABLE if role in option.commands} & {field.name for field in fields(RunSettings)}
    with command.make_context(role, words) as context:
        settings = run_settings(
            **without_default_rate({name: context.params[name] for name in mine & context.params.keys()})
        )
    return {name: value for name, value in asdict(settings).items() if name in mine}


def launched(settings: RunSettings) -> dict[str, list[str]]:
    """The command lines of all components."""
    urls = {k: f"tcp://127.0.0.1:{k}" for k in range(1, settings.pairs + 1)}
    engines = {k: {k: url} for k, url in urls.items()}
    return component_arguments(Path("results/x"), settings, Places(engines, urls))


@given(typed())
def test_settings_survive_being_a_command_line(given: dict[str, Any]) -> None:
    settings = run_settings(**given)
    assert understood("run", arguments("run", vars(settings))) == asdict(settings)


@given(typed())
def test_every_component_is_told_the_settings_that_its_command_takes(given: dict[str, Any]) -> None:
    settings = run_settings(**given)
    for name, words in launched(settings).items():
        told = understood(role_of(name), words)
        assert told.items() <= asdict(settings).items(), name
        assert {"timeout_s"} <= told.keys()


@pytest.mark.parametrize("speed", [None, 3.0])
def test_a_tape_reaches_the_gateway_with_its_speed(tmp_path: Path, speed: float | None) -> None:
    tape = tmp_path / "tape.bin"
    tape.write_bytes(SeededOrders(1, (450, 549)).records(1, 50))
    np.array(range(0, 50_000, 1_000), "<u8").tofile(tape.with_suffix(".due"))
    settings = run_settings(tape=str(tape), speed=speed, orders=40)
    assert settings.arrivals == "recorded"
    for offered in (settings, RunSettings(tape=str(tape), orders=40, orders_per_s=500.0)):
        assert understood("gateway", launched(offered)["gateway"]).items() <= asdict(offered).items()


def test_pairs_are_assigned_to_reporters_in_turn() -> None:
    settings = RunSettings(pairs=3, reporters=2, cpus={"engine": 1, "engine.3": 0})
    engines = {k: {k: f"tcp://127.0.0.1:{k}"} for k in (1, 2, 3)}
    places = Places(engines, {k: f"tcp://127.0.0.1:9{k}" for k in (1, 2)})
    lines = component_arguments(Path("results/x"), settings, places)
    assert list(lines) == Lineup.of(settings).names
    told = {name: dict(zip(words[::2], words[1::2], strict=False)) for name, words in lines.items()}
    for pair, reporter in ((1, 1), (2, 2), (3, 1)):
        for role, place in (("gateway", "--engine"), ("engine", "--listen")):
            words = told[named(role, pair)]
            assert words["--instance"] == str(pair)
            assert words[place] == places.engines[pair][pair]
            assert words["--reporter"] == places.reporters[reporter]
    assert [told[name].get("--cpu") for name in ("engine", "engine.2", "engine.3")] == ["1", "1", "0"]
    assert [told[name]["--instance"] for name in ("reporter", "reporter.2")] == ["1", "2"]
    assert {(told[name]["--pairs"], told[name]["--reporters"]) for name in ("reporter", "reporter.2")} == {("3", "2")}


def test_each_gateway_of_a_market_is_joined_to_each_engine() -> None:
    settings = RunSettings(gateways=2, engines=2, instruments=5, record=True)
    engines = {
        1: {1: "tcp://127.0.0.1:1", 2: "tcp://127.0.0.1:2"},
        2: {1: "tcp://127.0.0.1:3", 2: "tcp://127.0.0.1:4"},
    }
    lines = component_arguments(Path("results/x"), settings, Places(engines, {1: "tcp://127.0.0.1:9"}))
    assert list(lines) == ["reporter", "engine", "engine.2", "gateway", "gateway.2"]
    by_name = {name: dict(zip(words[::2], words[1::2], strict=False)) for name, words in lines.items()}
    assert by_name["engine.2"]["--listen"] == "tcp://127.0.0.1:3 tcp://127.0.0.1:4"
    assert by_name["gateway.2"]["--engine"] == "tcp://127.0.0.1:2 tcp://127.0.0.1:4"
    assert [by_name[name]["--input"] for name in ("engine", "engine.2")] == [
        "results/x/input.bin",
        "results/x/input.2.bin",
    ]
