"""Whatever a command prints at a width of 500 columns is there at 60, 80 and 120: no figure is cut, no name shrinks."""

from __future__ import annotations

import json
import re
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from rich.cells import cell_len

from exchange_simulation.cli.main import main
from exchange_simulation.messaging.report import show
from tests.exchange_simulation.cli.test_recorded_results import NAMES, unpack

pytestmark = pytest.mark.xdist_group("every table")

NUMBER = re.compile(r"\d[\d,.]*")
LONG_NAME = "zeromq+ipc, packing 1000, arrivals bursts:1000, price-model normal"
LONG_REASON = "saturated: the gateway offered 31,415 of 92,653 orders/s, and its p99 lag reached 58,979 us in second 3"


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The recorded folders, with arms of long names, one of them saturated, and rates that were not held."""
    folder = unpack(tmp_path_factory.mktemp("tables"))
    for trial in ("compare", "sweep"):
        change(folder / trial / "comparison.json", lengthen_arms)
    change(folder / "capacity" / "capacity.json", fail_probes)
    return folder


def change(file: Path, edit: Any) -> None:
    record = json.loads(file.read_text())
    edit(record)
    file.write_text(json.dumps(record))


def lengthen_arms(record: Any) -> None:
    for arm in record["arms"]:
        arm["contender"] = f"{LONG_NAME}, {arm['contender']}"
    record["arms"][0]["saturated"] = 3


def fail_probes(record: Any) -> None:
    for probe in record["probes"]:
        probe.update(holds=False, why=LONG_REASON)


@cache
def output(width: int, *words: str) -> str:
    done = CliRunner().invoke(main, words, env={"COLUMNS": str(width)})
    assert done.exit_code == 0, done.output
    return done.stdout


def numbers(text: str) -> Counter[str]:
    return Counter(number.rstrip(",.") for number in NUMBER.findall(text))


@pytest.mark.parametrize("name", NAMES)
def test_every_figure_of_a_wide_terminal_is_in_a_narrow_one(name: str, results: Path):
    words = ("results", "show", name, "--results", str(results))
    wide = output(500, *words)
    assert sum(numbers(wide).values()) > 5
    for narrow in (output(width, *words) for width in (60, 80, 120)):
        assert not numbers(wide) - numbers(narrow)
        assert "…" not in narrow


@pytest.mark.parametrize("pair", [("run-zeromq", "run-amqp"), ("compare", "sweep")])
def test_every_figure_of_a_difference_is_in_a_narrow_terminal(pair: tuple[str, str], results: Path):
    words = ("results", "diff", *pair, "--results", str(results))
    wide = numbers(output(500, *words))
    assert [width for width in (60, 80, 120) if wide - numbers(output(width, *words))] == []


@pytest.mark.parametrize("width", [60, 80, 120])
def test_a_table_keeps_within_the_terminal(width: int, results: Path):
    for name in ("run-pairs", "compare", "nagle", "sweep", "bench-request-reply", "suite"):
        lines = output(width, "results", "show", name, "--results", str(results)).splitlines()
        too_long = [line for line in lines if cell_len(line.rstrip()) > width and " " in line.strip()]
        assert [line for line in too_long if not line.startswith(("page:", "tables:", "record:"))] == []


@pytest.mark.parametrize("width", [80, 120])  # narrower ones fold the table
def test_a_suite_begins_with_a_summary_of_at_most_30_lines(width: int, results: Path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(width))
    record = json.loads((results / "suite" / "bench.json").read_text())
    show(record)
    lines = capsys.readouterr().out.splitlines()
    first_detail = next(n for n, line in enumerate(lines) if line.startswith(f"{record['parts'][0]['benchmark']}: "))
    summary = "\n".join(lines[:first_detail])
    assert first_detail <= 30
    assert all(part["benchmark"] in summary for part in record["parts"])
