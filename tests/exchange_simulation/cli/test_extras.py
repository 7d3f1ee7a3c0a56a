"""An installation without the libraries of an extra says which is missing and how to get it, and loses no run."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from exchange_simulation.launching.errors import EXTRAS
from tests.exchange_command import exchange

PROJECT = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())["project"]


@pytest.fixture
def without(tmp_path: Path) -> str:
    """A folder for PYTHONPATH in which every library of an extra is missing."""
    for library in set().union(*EXTRAS.values()):
        text = f'raise ModuleNotFoundError("No module named {library!r}", name="{library}")'
        (tmp_path / f"{library}.py").write_text(text)
    return str(tmp_path)


@pytest.mark.parametrize(
    ("words", "extra"),
    [
        (("compare", "--dry-run"), "report"),
        (("compare", "--transports", "zeromq,nats"), "report"),
        (("spark", "summary", "."), "spark"),
        (("serve", "--results", "."), "serve"),
    ],
)
def test_a_command_that_needs_an_extra_names_it_before_it_measures(
    words: tuple[str, ...], extra: str, without: str
) -> None:
    outcome = exchange(*words, PYTHONPATH=without)
    assert outcome.code == 2, outcome.err
    assert f"pip install 'exchange-simulation[{extra}]'" in outcome.err


def test_the_doctor_without_spark_says_so_and_shows_the_rest(without: str) -> None:
    outcome = exchange("doctor", "--seconds", 0.5, PYTHONPATH=without)
    assert outcome.code == 0, outcome.err
    assert "-> pip install 'exchange-simulation[spark]'" in outcome.out
    assert "Spark's tables (no Spark)" in " ".join(outcome.out.split())


def test_the_extras_are_those_of_the_project() -> None:
    for extra, libraries in EXTRAS.items():
        declared = " ".join(PROJECT["optional-dependencies"][extra])
        assert [library for library in libraries - {"py4j"} if library not in declared] == []
        assert [library for library in libraries if library in " ".join(PROJECT["dependencies"])] == []


def test_a_run_without_the_drawing_library_leaves_out_the_page(tmp_path: Path, without: str) -> None:
    """It prints its outcome."""
    outcome = exchange(
        "run",
        "--transport",
        "memory",
        "--orders",
        100,
        "--spark",
        "--results",
        tmp_path / "results",
        PYTHONPATH=without,
    )
    assert outcome.code == 0, outcome.err
    assert "100 orders sent and received" in outcome.out
    assert "no page: this needs matplotlib: pip install 'exchange-simulation[report]'" in outcome.err
    assert "no tables: this needs" in outcome.err


@pytest.mark.parametrize("repeats", [1, 2])
def test_a_benchmark_without_the_extra_says_what_it_leaves_out(tmp_path: Path, without: str, repeats: int) -> None:
    """It prints its outcome."""
    words = ("--transport", "memory", "--count", 9, "--sizes", 8, "--name", "b", "--results", tmp_path)
    outcome = exchange("bench", "de-pp", *words, "--repeats", repeats, PYTHONPATH=without)
    assert outcome.code == 0, outcome.err
    assert "de-pp" in outcome.out
    assert "no page: this needs matplotlib: pip install 'exchange-simulation[report]'" in outcome.err
    has_sentence = "no intervals of medians: this needs scipy: pip install 'exchange-simulation[report]'" in outcome.err
    assert has_sentence is (repeats > 1)  # a single repeat has no interval, whatever is installed
    assert "page: " not in outcome.out
    assert (tmp_path / "b" / "bench.json").exists()
