"""`exchange nagle`, as its user sees it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from exchange_simulation.cli.main import main
from exchange_simulation.reports.comparison.table import show_nagle
from tests.exchange_command import exchange_in_process

pytestmark = pytest.mark.xdist_group("nagle")

SMALL = ("--transports", "tcp", "--rates", "1000", "--seconds", "0.5", "--repeats", "1", "--keep-noisy", "--no-spark")


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The results folder, and what the command printed."""
    folder = tmp_path_factory.mktemp("results")
    finished = exchange_in_process("nagle", *SMALL, "--results", folder, "--name", "small")
    assert finished.code == 0, finished.err
    return folder, finished.out


@pytest.fixture
def results(measured: tuple[Path, str]) -> Path:
    return measured[0]


def test_packets_are_fewer_with_nagle_on(results: Path) -> None:
    record = json.loads((results / "small" / "comparison.json").read_bytes())
    off, on = (arm["metrics"] for arm in record["arms"])
    assert off["packets_per_order"]["median"] > on["packets_per_order"]["median"]


def test_the_paper_s_rows_stand_beside_its_own_roles_only(
    measured: tuple[Path, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """The tables fit into 100 columns."""
    results, out = measured
    assert "the paper's" not in out
    assert "Its figures appear here with --roles broker over amqp" in " ".join(out.split())
    record = json.loads((results / "small" / "comparison.json").read_bytes())
    record["arms"][1]["settings"]["nagle"] = ["broker"]
    show_nagle(record)
    beside = capsys.readouterr().out
    assert re.search(r"the paper's +Nagle on +2\.27 +359 +440", beside)
    assert "mean handed" in beside
    assert "completion mean from due time" in out or "saturated" in out  # on a busy machine
    assert max(map(len, out.partition("\n\n")[2].splitlines()[:-1])) <= 100


def test_a_page_of_two_arms_has_a_table_and_no_chart(results: Path) -> None:
    page = (results / "small" / "comparison.html").read_text()
    assert "<svg" not in page
    assert "<details open><summary>Tables: completion time" in page
    assert "table 1" in page


def test_a_trial_is_resumed_by_the_command_that_made_it(results: Path) -> None:
    refused = CliRunner().invoke(main, ["compare", "--resume", "small", "--results", str(results)])
    assert refused.exit_code == 2
    assert "exchange nagle --resume small" in " ".join(refused.output.split())


def test_a_dry_run_says_how_many_runs_there_are(tmp_path: Path) -> None:
    finished = CliRunner().invoke(main, ["nagle", "--dry-run", "--results", str(tmp_path)])
    assert " ".join(finished.output.split()).startswith(
        "Nagle off, Nagle on, Nagle on at broker; 15 blocks, 10 repeats: 300 runs and 6 warm-ups"
    )
    assert "cannot reach a verdict" not in finished.output
    assert list(tmp_path.iterdir()) == []
