"""Impossible workloads are refused before the start: the error names the entry, its value and what it takes."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from exchange_simulation.cli.main import main
from exchange_simulation.messaging.supply_chain.topologies import EXAMPLE


def refusal(*words: str) -> str:
    """The error of a refused workload, in one line."""
    finished = CliRunner().invoke(main, ["bench", "supply-chain", "--plan", *words])
    assert finished.exit_code == 2, finished.output
    assert finished.stdout == ""
    assert "Traceback" not in finished.stderr
    return " ".join(finished.stderr.split())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--base 0", "'0': bases are 1 to 1,000"),
        ("--base many", "'many' is no list of bases"),
        ("--base 3 --topology horizontal", "--base is 3; --topology horizontal takes 5 or more"),
        ("--topology freeform", "--config FILE and --topology freeform belong together"),
        ("--config some.toml", "--config FILE and --topology freeform belong together"),
        ("--interactions 8", "'8' is not one of"),
        ("--duration nan", "'nan' is no duration: give one, as 2, 2s"),
        ("--duration 20 --restart-after 20", "--restart-after is 20; it takes less than --duration, which is 20"),
    ],
)
def test_an_option_that_makes_no_workload_is_refused(words: str, message: str) -> None:
    assert message in refusal(*words.split())


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("5 = 10.0", "8 = 10.0", "[rates]: '8' is unknown; it takes 1, 2, 3, 4, 5, 6, 7"),
        ("5 = 10.0", "5 = -1", "the rate of interaction 5 is -1; it takes initiations a second, 0 or more"),
        ("5 = 10.0", "5 = nan", "the rate of interaction 5 is nan"),
        ("5 = 10.0", "5 = 1e6", "these rates cannot be met: each supermarket would send and receive 1,000,"),
        ("5 = 10.0", "5 = 4e3", "these rates cannot be met: each headquarters would send and receive 16,0"),
        (
            "distribution_centres = 2",
            "distribution_centres = 0",
            "interaction 1, orders of supermarkets, needs at least one distribution centre",
        ),
        ("suppliers = 3", "suppliers = 0", "needs at least one supplier, and suppliers is 0"),
        ("suppliers = 3", "suppliers = true", "suppliers is True; it takes a whole number, 0 to 1,000"),
        ("suppliers = 3", "vendors = 3", "[locations]: 'vendors' is unknown"),
        ("offers_of = 0.5", "offers_of = 0", "offers_of is 0; it takes a share above 0 and up to 1"),
        ("offers_of = 0.5", "offers_of = 0.001", "nobody makes offers"),
        ("families = 20", "families = 0", "families is 0; it takes a whole number, 1 to 10,000"),
        ("order = false", "order = 1", "[persistent] order is 1; it takes true or false"),
        ("order = false", "orders = true", "[persistent]: 'orders' is unknown; it takes callForOffers,"),
        ("[1.0, 4.0, 20.0]", "[1.0, 4.0]", "the sizes of order are [1.0, 4.0]; give three in kB"),
        ("[1.0, 4.0, 20.0]", "[1.0, 4.0, 65]", "a size of order is 65; it takes 0.1 to 64 kB"),
        ("[1.0, 4.0, 20.0]", "[0, 4.0, 20]", "a size of order is 0; it takes 0.1 to 64 kB"),
        ("[locations]", "[places]", "'places' is unknown"),
        ("[rates]", "rates", "is no TOML that can be read"),
    ],
)
def test_a_file_that_makes_no_workload_is_refused(old: str, new: str, message: str, tmp_path: Path) -> None:
    assert old in EXAMPLE
    config = tmp_path / "mine.toml"
    config.write_text(EXAMPLE.replace(old, new))
    assert message in refusal("--topology", "freeform", "--config", str(config))


def test_interactions_that_the_file_turns_off_are_refused(tmp_path: Path) -> None:
    config = tmp_path / "mine.toml"
    config.write_text(EXAMPLE)
    message = refusal("--topology", "freeform", "--config", str(config), "--interactions", "3,4")
    assert "no interaction is on" in message


def test_a_missing_file_is_named() -> None:
    assert "--config absent.toml cannot be read" in refusal("--topology", "freeform", "--config", "absent.toml")


def test_the_example_makes_a_plan(tmp_path: Path) -> None:
    config = tmp_path / "mine.toml"
    config.write_text(EXAMPLE)
    words = ["bench", "supply-chain", "--plan", "--topology", "freeform", "--config", str(config)]
    finished = CliRunner().invoke(main, words)
    assert finished.exit_code == 0
    first_line, *_ = finished.stdout.splitlines()
    assert first_line == "supply chain, freeform: 97 messages/s delivered of 96.5/s sent, 305 kB/s"


def test_more_queues_than_the_broker_has_descriptors_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("resource.getrlimit", lambda _: (800, 800))
    message = refusal("--topology", "horizontal", "--base", "100")
    assert "the broker needs 885 descriptors for queues and connections, and this shell allows 800" in message
    plan = CliRunner().invoke(main, ["bench", "supply-chain", "--plan", "--topology", "horizontal", "--base", "50"])
    assert plan.exit_code == 0


@pytest.mark.parametrize("duration", ["60", "60s", "1m", "500ms"])
def test_seconds_may_have_a_unit_of_time(duration: str) -> None:
    words = ["bench", "supply-chain", "--plan", "--duration", duration]
    assert CliRunner().invoke(main, words).exit_code == 0


def test_seconds_have_no_other_unit() -> None:
    assert "'60x' is no duration: give one, as 2, 2s, 500ms, 200us, 1m or 1h" in refusal("--duration", "60x")
