"""Replays of a tape: the settings that the tape determines, refused settings, and a whole run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from exchange_simulation.cli.main import main
from exchange_simulation.cli.run import command
from exchange_simulation.launching.errors import UserError
from exchange_simulation.launching.tape import settings_of_tape
from exchange_simulation.launching.typed_settings import run_settings, without_default_rate
from gateway.seeded_orders import SeededOrders
from tests.exchange_command import VALID_STATUSES, exchange, run_exchange_in_process

DUE_NS = [0, 0, 1_000_000, 3_000_000, 4_000_000]
"""Five orders: the four intervals between them take 4 ms, which is 1000 orders/s."""


@pytest.fixture
def tape(tmp_path: Path) -> Path:
    path = tmp_path / "tape.bin"
    path.write_bytes(SeededOrders(1, (450, 549)).records(1, 5))
    return path


@pytest.fixture
def timed(tape: Path) -> Path:
    """A tape with due times beside it."""
    np.array(DUE_NS, "<u8").tofile(tape.with_suffix(".due"))
    return tape


def settings_from(tape: Path, **given: Any) -> dict[str, Any]:
    """Return the settings that the tape determines, beside those that are given."""
    return settings_of_tape({"tape": str(tape), "orders": None, "speed": None, **given})


def test_a_tape_without_due_times_is_replayed_at_the_rate(tape: Path) -> None:
    assert settings_from(tape) == {"orders": 5}


def test_by_default_a_tape_is_replayed_with_its_due_times(timed: Path) -> None:
    assert settings_from(timed) == {"orders": 5, "arrivals": "recorded", "orders_per_s": 1000.0}
    assert settings_from(timed, speed=10.0)["orders_per_s"] == 10_000.0
    assert settings_from(timed, orders=3) == {"orders": 3, "arrivals": "recorded", "orders_per_s": 2000.0}


@pytest.mark.parametrize(
    "given",
    [
        {"arrivals": "fixed"},
        {"arrivals": "poisson"},
        {"arrivals": "fixed", "orders_per_s": 4000.0},
        {"orders_per_s": None},
    ],
)
def test_given_arrivals_or_rate_max_override_the_due_times(timed: Path, given: dict[str, Any]) -> None:
    assert settings_from(timed, **given) == {"orders": 5}
    settings = run_settings(tape=str(timed), **given)
    assert settings.arrivals == given.get("arrivals", "fixed")
    assert settings.orders_per_s == given.get("orders_per_s", 8000.0)


def test_the_settings_that_a_gateway_gets_are_already_settled(timed: Path) -> None:
    first = settings_from(timed, speed=3.0)
    typed_rate = repr(first["orders_per_s"])  # as the launcher writes it into the gateway's command
    given = {**first, "orders_per_s": float(typed_rate), "speed": 3.0}
    assert settings_from(timed, **given) == first


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"orders": 6}, "--orders is 6; .* holds 5 orders: ask for 1 to 5"),
        ({"orders": 0}, "--orders is 0"),
        ({"orders_per_s": 8000.0}, "--rate is 8000, but .*tape.due says when the orders are due: leave --rate out"),
        ({"orders_per_s": 5.0}, "--rate is 5, but"),
        ({"orders": 2}, "2 orders due at once, which is no rate: take --rate max"),
        ({"orders": 1}, "1 order due at once"),
    ],
)
def test_settings_that_contradict_due_times_are_refused(timed: Path, given: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        settings_from(timed, **given)


@pytest.mark.parametrize(
    ("environment", "arrivals", "orders_per_s"),
    [({}, "recorded", 1000.0), ({"EXCHANGE_ARRIVALS": "fixed"}, "fixed", 8000.0)],
)
def test_arrivals_of_the_environment_override_the_due_times_too(
    timed: Path, monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], arrivals: str, orders_per_s: float
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with command.make_context("run", ["--tape", str(timed)]) as context:
        options = {name: context.params[name] for name in ("tape", "arrivals", "orders_per_s")}
        settings = run_settings(**without_default_rate(options))
    assert settings.arrivals == arrivals
    assert settings.orders_per_s == orders_per_s


@pytest.mark.parametrize("given", [{"speed": 2.0}, {"arrivals": "recorded"}])
def test_a_speed_without_due_times_is_refused(tape: Path, given: dict[str, Any]) -> None:
    with pytest.raises(UserError, match=r"tape\.due.* is not there: give the orders a --rate instead"):
        settings_from(tape, **given)


def refused(*words: object) -> str:
    finished = CliRunner().invoke(main, [str(word) for word in words])
    assert finished.exit_code == 2, finished.output
    return " ".join(finished.output.split())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--prices", "1..2"], "--prices is 1..2; allowed is the default: the prices are the tape's"),
        (["--price-model", "wide"], "--price-model is wide; allowed is uniform"),
        (["--rate", "max", "--speed", "2"], "--speed is 2; allowed is none, unless a tape's due times"),
        (["--arrivals", "recorded", "--rate", "max"], "--rate is max, but"),
        (["--speed", "0"], "--speed is 0; allowed is 0.001 to 1,000,000"),
    ],
)
def test_a_setting_that_contradicts_the_tape_is_named(
    timed: Path, tmp_path: Path, words: list[str], message: str
) -> None:
    assert message in refused("run", "--tape", timed, "--results", tmp_path / "results", *words)
    assert not (tmp_path / "results").exists()


def test_a_file_that_is_no_tape_is_refused_with_the_offset(tape: Path, tmp_path: Path) -> None:
    tape.write_bytes(tape.read_bytes()[:-3])
    assert f"{tape}: truncated: 7 of 10 bytes at offset 40" in refused("run", "--tape", tape)
    tape.write_bytes(b"")
    assert f"{tape}: the tape is empty" in refused(
        "gateway", "--engine", "x", "--reporter", "y", "--run", "z", "--tape", tape
    )
    assert "cannot read nowhere: No such file" in refused("run", "--tape", "nowhere")
    assert "is a name for due times" in refused("run", "--tape", tmp_path / "tape.due")


def test_due_times_of_the_wrong_size_are_refused(tape: Path) -> None:
    tape.with_suffix(".due").write_bytes(b"12345678")
    assert "8 bytes, where 5 orders take 40" in refused("run", "--tape", tape)


def test_a_tape_has_due_times_if_a_rate_is_given(tmp_path: Path) -> None:
    tape = tmp_path / "tape.bin"
    words = ("tape", "--orders", 300, "--output", tape)
    command_line = [str(word) for word in (*words, "--arrivals", "bursts:3", "--rate", 1000)]
    assert CliRunner().invoke(main, command_line).exit_code == 0
    due = np.fromfile(tape.with_suffix(".due"), "<u8")
    assert due.tolist() == [place // 3 * 3_000_000 for place in range(300)]
    assert tape.read_bytes() == SeededOrders(1, (450, 549)).records(1, 300)
    assert "remove it, or give this one a --rate" in refused(*words, "--overwrite")
    assert "choose another" in refused("tape", "--rate", 5, "--output", tmp_path / "tape.due")


def test_a_recorded_run_can_be_offered_again_faster_over_another_transport(tmp_path: Path) -> None:
    first = run_exchange_in_process(
        tmp_path, "--arrivals", "poisson", "--rate", 4000, "--orders", 800, "--record", "--name", "first"
    ).record
    tape = tmp_path / "first" / "orders.bin"
    words = ("--tape", tape, "--speed", 2, "--packing", 3, "--record", "--name", "again")
    again = run_exchange_in_process(tmp_path, "--transport", "zeromq+inproc", *words).record
    assert {first["status"], again["status"]} <= VALID_STATUSES
    assert again["checksums"] == first["checksums"] == exchange("match", tape, "--json").record["checksums"]
    first_due_ns = np.fromfile(tmp_path / "first" / "orders.due", "<u8")
    due_ns_again = np.fromfile(tmp_path / "again" / "orders.due", "<u8")
    assert (first_due_ns // 2 == due_ns_again).all()
    settings = again["settings"]
    rate = again["rates"]["offered_orders_per_s"]
    assert settings["arrivals"] == "recorded"
    assert settings["speed"] == 2.0
    assert settings["tape"] == str(tape)
    assert rate == settings["orders_per_s"] == pytest.approx(2 * 799e9 / int(first_due_ns[-1]))
