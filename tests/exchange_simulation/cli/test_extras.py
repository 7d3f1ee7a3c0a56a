"""An installation without the libraries of an extra says which is missing and how to get it, and loses no run."""

from __future__ import annotations

import os
import subprocess
import sys
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


def test_python_without_an_extra_names_it_where_a_function_is_imported(without: str) -> None:
    """Regression: `from exchange_simulation import run` ended with "No module named 'matplotlib'"."""
    words = [sys.executable, "-c", "from exchange_simulation import run"]
    environment = {**os.environ, "PYTHONPATH": f"{without}:{Path(__file__).parents[3]}"}
    ended = subprocess.run(words, capture_output=True, text=True, env=environment, check=False)
    sentence = "ModuleNotFoundError: this needs matplotlib: pip install 'exchange-simulation[report]'"
    assert ended.stderr.splitlines()[-1] == sentence


def test_the_extras_are_those_of_the_project() -> None:
    for extra, libraries in EXTRAS.items():
        declared = " ".join(PROJECT["optional-dependencies"][extra])
        assert [library for library in libraries - {"py4j"} if library not in declared] == []
        assert [library for library in libraries if library in " ".join(PROJECT["dependencies"])] == []


RUN = ("run", "--transport", "memory", "--rate", "max", "--orders", 100, "--name", "first")


def test_a_run_without_the_drawing_library_names_its_folder_and_how_to_get_pages(tmp_path: Path, without: str) -> None:
    """That is all that it says about what was not installed."""
    outcome = exchange(*RUN, "--results", tmp_path, PYTHONPATH=without)
    assert outcome.code == 0, outcome.err
    assert "100 orders sent and received" in outcome.out
    *_, last = outcome.out.splitlines()
    assert last == f"results: {tmp_path / 'first'}, without a page: pip install '.[report]' adds it"
    assert "pip" not in outcome.err
    assert "table" not in outcome.err


def test_a_run_whose_tables_cannot_be_made_says_so_in_one_line(tmp_path: Path, without: str) -> None:
    outcome = exchange(*RUN, "--spark", "--results", tmp_path, PYTHONPATH=without)
    assert outcome.code == 0, outcome.err
    (line,) = [line for line in outcome.err.splitlines() if "tables" in line]
    assert line.startswith("no tables: this needs pyarrow: pip install ")


def test_a_run_that_leaves_out_its_page_names_its_folder(tmp_path: Path) -> None:
    outcome = exchange(*RUN, "--no-page", "--results", tmp_path)
    assert outcome.out.splitlines()[-1] == f"results: {tmp_path / 'first'}"


@pytest.mark.parametrize("repeats", [1, 2])
def test_a_benchmark_without_the_extra_says_what_it_leaves_out(tmp_path: Path, without: str, repeats: int) -> None:
    """It prints its outcome."""
    words = ("--transport", "memory", "--count", 9, "--sizes", 8, "--name", "b", "--results", tmp_path)
    outcome = exchange("bench", "de-pp", *words, "--repeats", repeats, PYTHONPATH=without)
    assert outcome.code == 0, outcome.err
    assert "de-pp" in outcome.out
    lacks = "a page" if repeats == 1 else "a page and intervals of medians"  # a single repeat has no interval
    adds = f"pip install '.[report]' adds {'it' if repeats == 1 else 'them'}"
    assert outcome.out.splitlines()[-1] == f"results: {tmp_path / 'b'}, without {lacks}: {adds}"
    assert "pip" not in outcome.err
    assert (tmp_path / "b" / "bench.json").exists()
