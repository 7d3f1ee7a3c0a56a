"""Results of version 0.1.0, recorded before the rooms were rebuilt, are listed, shown, reported and compared alike.

`recorded/results.tar.xz` holds the folders as that version left them, without pages; `recorded/said.json` holds what
its commands printed. `python -m tests.exchange_simulation.cli.test_recorded_results EXCHANGE` makes it again with the
program EXCHANGE.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from exchange_simulation.cli.main import main

pytestmark = pytest.mark.xdist_group("recorded results")

HERE = Path(__file__).parent / "recorded"
NAMES = (
    "run-zeromq",
    "run-amqp",
    "run-pairs",
    "run-max",
    "compare",
    "nagle",
    "sweep",
    "capacity",
    "simulate",
    "bench-de-spsc",
    "bench-request-reply",
    "suite",
)
MOST_BYTES = 350_000
AS_JSON = {
    "list": ("results", "list", "--json", "--results", "RESULTS"),
    **{f"show {name}": ("results", "show", name, "--json", "--results", "RESULTS") for name in NAMES[:-2]},
    **{
        f"diff {first} {second}": ("results", "diff", first, second, "--json", "--results", "RESULTS")
        for first, second in (
            ("run-zeromq", "run-amqp"),
            ("compare", "sweep"),
            ("capacity", "capacity"),
            ("bench-de-spsc", "suite"),
            ("simulate", "simulate"),
        )
    },
    **{f"report {name}": ("report", "RESULTS/" + name, "--json", "--no-spark") for name in ("run-pairs", "nagle")},
}
"""Commands that print JSON about the folders, by a name of ours."""


def unpack(folder: Path) -> Path:
    with tarfile.open(HERE / "results.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    return folder


def words_in(words: tuple[str, ...], results: Path) -> list[str]:
    return [word.replace("RESULTS", str(results)) for word in words]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack(tmp_path_factory.mktemp("recorded"))


@pytest.fixture(scope="module")
def reported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same folders, for commands that make a trial's record anew."""
    return unpack(tmp_path_factory.mktemp("reported"))


def json_in_twelve_digits(text: str) -> Any:
    """Sums in another order differ in the last of a float's sixteen digits, and mean the same."""
    return json.loads(text, parse_float=lambda number: float(f"{float(number):.12g}"))


def without_later_metrics(said: Any, said_then: Any) -> Any:
    """Leave out metrics of which the version of that time knew nothing: of its runs they are all null."""
    if not isinstance(said, list):
        return said
    for arm, arm_then in zip(said, said_then, strict=True):
        later = arm.get("metrics", {}).keys() - arm_then.get("metrics", {}).keys()
        for metric in later:
            assert set(arm["metrics"].pop(metric).values()) == {None}, metric
    return said


@pytest.mark.parametrize("name", AS_JSON)
def test_a_recorded_folder_says_what_it_said_to_the_version_that_made_it(name: str, results: Path, reported: Path):
    then = json_in_twelve_digits((HERE / "said.json").read_text())[name]
    done = CliRunner().invoke(main, words_in(AS_JSON[name], reported if name.startswith("report ") else results))
    said = without_later_metrics(json_in_twelve_digits(done.stdout), then["said"])
    assert (done.exit_code, said) == (then["code"], then["said"])


@pytest.mark.parametrize("name", NAMES)
def test_a_recorded_folder_is_shown_in_the_terminal(name: str, results: Path):
    done = CliRunner().invoke(main, ["results", "show", name, "--results", str(results)])
    assert done.exit_code == 0, done.output
    assert len(done.stdout.splitlines()) > 3


@pytest.mark.parametrize("name", [name for name in NAMES if name not in {"run-max", "simulate", "bench-de-spsc"}])
def test_a_recorded_folder_gets_its_page_again(name: str, reported: Path):
    done = CliRunner().invoke(main, ["report", str(reported / name), "--no-spark"])
    assert done.exit_code == 0, done.output
    page = Path(done.output.rpartition("page: ")[2].strip())
    assert page.parent == reported / name
    assert ("<svg" in page.read_text()) is (name not in {"compare", "nagle"}), "their two arms are too few for a chart"
    assert page.stat().st_size <= MOST_BYTES


def test_a_removed_amqp_client_is_reported_but_not_run_again(tmp_path: Path):
    record = unpack(tmp_path) / "run-amqp" / "run.json"
    record.write_text(record.read_text().replace('"amqp_client": "compiled"', '"amqp_client": "joined"'))
    for words in (["results", "list"], ["results", "show", "run-amqp"]):
        done = CliRunner().invoke(main, [*words, "--results", str(tmp_path)])
        assert done.exit_code == 0, done.output
    assert "joined" in done.stdout
    assert CliRunner().invoke(main, ["report", str(record.parent), "--no-spark"]).exit_code == 0
    again = CliRunner().invoke(main, ["results", "rerun", "run-amqp", "--results", str(tmp_path)])
    assert again.exit_code == 2
    assert "amqp-client is 'joined'; allowed is compiled or pika" in again.output


def said_by(exchange: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        results = unpack(Path(folder))
        outcome = {}
        for name, words in AS_JSON.items():
            done = subprocess.run([exchange, *words_in(words, results)], capture_output=True, text=True, check=False)
            outcome[name] = {"code": done.returncode, "said": json.loads(done.stdout)}
    return outcome


if __name__ == "__main__":
    (HERE / "said.json").write_text(json.dumps(said_by(sys.argv[1]), separators=(",", ":")) + "\n")
