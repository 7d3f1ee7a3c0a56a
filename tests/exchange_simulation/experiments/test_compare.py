"""`exchange compare`, as its user sees it."""

from __future__ import annotations

import re
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

import orjson
import pandas
import pytest
from click.testing import CliRunner

from exchange_simulation.cli.main import main
from tests.exchange_command import FinishedCommand, command, exchange, exchange_in_process
from tests.machine import PATIENCE_S, until

pytestmark = pytest.mark.xdist_group("compare")

FAST = (
    "--transports",
    "memory,memory",
    "--rates",
    "2000",
    "--seconds",
    "0.2",
    "--repeats",
    "2",
    "--keep-noisy",
    "--no-spark",
)
"""Options of a fast comparison: memory against itself, in threads. Only the comparison is tested."""


def compare(results: Path, *words: object) -> FinishedCommand:
    """Run `exchange compare` in this process. Its runs are threads."""
    finished = CliRunner().invoke(main, list(map(str, ("compare", "--results", results, *words))))
    return FinishedCommand(finished.exit_code, finished.stdout, finished.stderr)


@dataclass(frozen=True)
class RecordedComparison:
    """A comparison that was made: its folder, and the finished command."""

    folder: Path
    finished: FinishedCommand


@pytest.fixture(scope="session")
def comparison(tmp_path_factory: pytest.TempPathFactory) -> RecordedComparison:
    results = tmp_path_factory.mktemp("results")
    words = (
        "--transports",
        "zeromq+inproc,memory",
        "--rates",
        "2000,4000",
        "--repeats",
        "2",
        "--seconds",
        "0.2",
        "--keep-noisy",
        "--no-spark",
    )
    finished = compare(results, *words, "--name", "small", "--json")
    return RecordedComparison(folder=results / "small", finished=finished)


def test_a_comparison_leaves_all_runs_a_record_and_a_page(comparison: RecordedComparison) -> None:
    folder = comparison.folder
    finished = comparison.finished
    assert finished.code == 0, finished.err
    assert finished.out.encode() == (folder / "comparison.json").read_bytes()
    assert finished.record["status"] == "complete"
    assert len(list(folder.glob("0[12]-*/run.json"))) == 8
    assert len(list(folder.glob("00-*/run.json"))) == 2
    assert {path.name for path in folder.iterdir() if path.is_file()} == {
        "plan.json",
        "comparison.json",
        "comparison.html",
        ".lock",
    }


def test_tables_that_cannot_be_made_change_no_exit_code_of_a_comparison(comparison: RecordedComparison) -> None:
    """They are made once, after the last run of the comparison."""
    results = comparison.folder.parent
    words = ("compare", "--resume", "small", "--results", results)
    in_the_way = results / "tables"
    in_the_way.write_text("no folder")
    try:
        finished = exchange_in_process(*words)
        without_tables = exchange_in_process(*words, EXCHANGE_NO_SPARK="1")
    finally:
        in_the_way.unlink()
    assert finished.code == 0, finished
    assert "making the tables; Ctrl-C leaves them out" in finished.err
    assert "not all tables are made: " in finished.err
    assert "File exists" in finished.err
    assert "page: " in finished.out
    assert "tables" not in without_tables.err


@pytest.mark.jvm
def test_the_tables_of_a_comparison_have_all_runs_but_warm_ups(comparison: RecordedComparison) -> None:
    folder = comparison.folder
    first = comparison.finished
    finished = exchange("compare", "--resume", "small", "--results", folder.parent, "--json")
    assert finished.code == 0
    assert finished.out == first.out, finished.err
    assert f"tables: {folder.parent / 'tables'} (" in finished.err
    runs = pandas.read_parquet(folder.parent / "tables" / "runs")
    assert set(runs["experiment"]) == {"small"}
    run_names = []
    for arm in first.record["arms"]:
        run_names += [run["run"] for run in arm["runs"]]
    assert sorted(runs["run"]) == sorted(run_names)


def test_every_figure_is_that_of_the_run_it_names(comparison: RecordedComparison) -> None:
    folder = comparison.folder
    for arm in comparison.finished.record["arms"]:
        runs = {run["repeat"]: orjson.loads((folder / run["run"] / "run.json").read_bytes()) for run in arm["runs"]}
        assert sorted(runs) == [1, 2]
        for repeat, run in runs.items():
            assert run["settings"]["transport"] == arm["contender"]
            assert run["settings"]["orders_per_s"] == arm["settings"]["orders_per_s"]
            assert arm["metrics"]["due_p99_us"]["by_repeat"][str(repeat)] == run["completion_us"]["due"]["p99"]
            cpu_s = sum(part["cpu_s"] for part in run["components"].values())
            expected = cpu_s / run["counts"]["orders_answered"] * 1e6
            assert arm["metrics"]["cpu_s_per_million"]["by_repeat"][str(repeat)] == pytest.approx(expected)


def test_all_arms_of_a_block_have_the_same_orders_in_a_repeat(comparison: RecordedComparison) -> None:
    """The next repeat has other orders."""
    record = comparison.finished.record
    for block in record["blocks"]:
        checksums_by_repeat: dict[int, set[str]] = {1: set(), 2: set()}
        for arm in record["arms"]:
            if arm["block"] != block:
                continue
            for run in arm["runs"]:
                run_record = orjson.loads((comparison.folder / run["run"] / "run.json").read_bytes())
                checksums_by_repeat[run["repeat"]].add(run_record["checksums"]["orders"])
        assert len(checksums_by_repeat[1]) == 1
        assert len(checksums_by_repeat[2]) == 1
        assert checksums_by_repeat[1] != checksums_by_repeat[2]


def test_a_plan_that_cannot_reach_a_verdict_warns_and_runs(comparison: RecordedComparison) -> None:
    finished = comparison.finished
    assert "2 repeats cannot reach a verdict: 6 are needed" in finished.err.partition("run 1 of")[0]
    assert {verdict["outcome"] for verdict in finished.record["verdicts"]} <= {"cannot tell", "not compared"}


def test_the_page_is_one_file_whose_links_lead_to_the_runs(comparison: RecordedComparison) -> None:
    folder = comparison.folder
    page = (folder / "comparison.html").read_text()
    links = re.findall(r'href="(?!data:)([^"#]+)"', page)
    assert len(links) == 8
    assert [link for link in links if not (folder / unquote(link)).exists()] == []
    assert "src=" not in page
    assert page.count("<svg") == 3 + 4  # three charts of the figures, and four like those of the paper
    for verdict in comparison.finished.record["verdicts"]:
        assert verdict["sentence"] in page


def test_the_tables_fit_into_80_columns(comparison: RecordedComparison) -> None:
    shown = compare(comparison.folder.parent, "--resume", "small", "--no-spark")
    assert shown.code == 0, shown.err
    assert "completion p50 from due time" in shown.out
    assert max(len(line) for line in lines_of_tables(shown.out)) <= 80


def lines_of_tables(output: str) -> list[str]:
    """The lines between the announcement, which ends with a blank line, and the path of the page, the last line."""
    _, _, after_announcement = output.partition("\n\n")
    *lines, _path_of_page = after_announcement.splitlines()
    return lines


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.long)])
def test_an_interrupted_comparison_can_be_resumed(number: signal.Signals, tmp_path: Path) -> None:
    words = command("compare", *FAST, "--seconds", 0.6, "--results", tmp_path, "--name", "mine")
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    until(lambda: list(tmp_path.glob("mine/01-*/run.json")), "the first run's record")
    process.send_signal(number)
    _, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 128 + number
    assert "exchange compare --resume mine goes on" in err
    assert "Traceback" not in err
    finished_runs = set()
    for path in tmp_path.glob("mine/0[12]-*/run.json"):
        if orjson.loads(path.read_bytes())["status"] != "partial":
            finished_runs.add(path.parent.name)
    assert 1 <= len(finished_runs) < 4
    finished = compare(tmp_path, "--resume", "mine", "--json", "--no-spark")
    assert finished.code == 0
    assert finished.record["status"] == "complete", finished.err
    all_runs = []
    for arm in finished.record["arms"]:
        all_runs += [run["run"] for run in arm["runs"]]
    assert finished_runs <= set(all_runs)
    assert len(all_runs) == 4


def test_runs_at_rate_max_are_compared_by_throughput_and_cpu(tmp_path: Path) -> None:
    finished = compare(tmp_path, *FAST, "--rates", "max", "--repeats", 1, "--json")
    assert finished.code == 0, finished.err
    assert [verdict["metric"] for verdict in finished.record["verdicts"]] == ["orders_per_s", "cpu_s_per_million"]
    assert "due_p50_us" not in finished.record["arms"][0]["metrics"]


def test_a_dry_run_prints_plan_and_length_and_leaves_nothing(tmp_path: Path) -> None:
    words = [word for word in FAST if word != "--no-spark"]
    finished = CliRunner().invoke(main, ["compare", *words, "--dry-run", "--results", str(tmp_path)])
    assert finished.output.splitlines()[0] == "memory, memory#2; 1 rate, 2 repeats: 4 runs and 2 warm-ups, about 16 s"
    assert [line.split()[0] for line in finished.output.splitlines()[-6:]] == ["warm-up"] * 2 + ["repeat"] * 4
    lines_without_path = [line for line in finished.output.splitlines() if str(tmp_path) not in line]
    assert max(map(len, lines_without_path)) <= 80
    assert len(finished.output.splitlines()) - len(lines_without_path) == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--transports", "zeromq,pigeon"], "known are"),
        (["--transports", "zeromq"], "two or more"),
        (["--rates", "1000,fast"], "'fast' is no rate"),
        (["--rates", "1000@5s"], "'1000@5s' is a load over time, and constant rates belong here, as 8000"),
        (["--rates", "1000,1e3"], "each once"),
        (["--rates", ""], "one or more"),
        (["--rates", "0"], "--rates is 0"),
        (["--repeats", "0"], "--repeats is 0"),
        (["--seconds", "0"], "--seconds"),
        (["--packing", "0"], "packing is 0"),
        (["--delivery", "acked"], "has no broker"),
        (["--name", "a/b"], "no name"),
        (["--resume", "nothing"], "holds no run or trial called nothing"),
        (["--resume", "nothing", "--rates", "1000"], "leave out --rates"),
        pytest.param(
            ["--transports", "tcp,zeromq?calls=slow", "--seconds", "0.1"], "compiled, plain", marks=pytest.mark.long
        ),
    ],
)
def test_a_mistake_is_named_and_leaves_nothing(words: list[str], message: str, tmp_path: Path) -> None:
    refused = CliRunner().invoke(main, ["compare", *words, "--results", str(tmp_path)])
    assert refused.exit_code == 2, refused.output
    assert message in " ".join(refused.output.split())
    assert list(tmp_path.iterdir()) == []


def test_a_comparison_that_exists_is_not_written_into(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    refused = CliRunner().invoke(main, ["compare", *FAST, "--name", "mine", "--results", str(tmp_path)])
    assert "exists already" in refused.output
    assert list((tmp_path / "mine").iterdir()) == []
