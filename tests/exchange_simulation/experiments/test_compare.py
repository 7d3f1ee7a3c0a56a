"""`exchange compare`, as its user sees it."""

from __future__ import annotations

import re
import signal
import subprocess
from pathlib import Path
from urllib.parse import unquote

import orjson
import pandas
import pytest
from click.testing import CliRunner

from exchange_simulation.cli.main import main
from tests.exchange_command import FinishedCommand, command, exchange, exchange_in_process
from tests.machine import PATIENCE_S, until
from tests.spark.fake_java import java_that, leaves_its_pipe_open

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
"""In threads of one process, against itself: what is tested is the comparing."""


def compare(results: Path, *words: object) -> FinishedCommand:
    """In this process: its runs are threads of one."""
    done = CliRunner().invoke(main, list(map(str, ("compare", "--results", results, *words))))
    return FinishedCommand(done.exit_code, done.stdout, done.stderr)


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, FinishedCommand]:
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
    return results / "small", compare(results, *words, "--name", "small", "--json")


def test_a_comparison_leaves_every_run_its_record_and_its_page(small: tuple[Path, FinishedCommand]) -> None:
    folder, said = small
    assert said.code == 0, said.err
    assert said.out.encode() == (folder / "comparison.json").read_bytes()
    assert said.record["status"] == "complete"
    assert len(list(folder.glob("0[12]-*/run.json"))) == 8
    assert len(list(folder.glob("00-*/run.json"))) == 2
    assert {path.name for path in folder.iterdir() if path.is_file()} == {
        "plan.json",
        "comparison.json",
        "comparison.html",
        ".lock",
    }


@leaves_its_pipe_open
def test_a_failure_of_spark_changes_no_exit_code_of_a_comparison(
    small: tuple[Path, FinishedCommand], tmp_path: Path
) -> None:
    """Spark follows the whole comparison."""
    words = ("compare", "--resume", "small", "--results", small[0].parent)
    said = exchange_in_process(*words, **java_that("echo no memory >&2; exit 1", tmp_path / "java"))
    assert said.code == 0, said
    assert "Spark makes the tables of small; Ctrl-C leaves them out" in said.err
    assert "no tables: Spark's JVM did not start (no memory)" in said.err
    assert "page: " in said.out
    assert not exchange_in_process(*words, EXCHANGE_NO_SPARK="1").err.count("tables")


@pytest.mark.jvm
def test_the_tables_of_a_comparison_hold_each_of_its_runs_but_warm_ups(small: tuple[Path, FinishedCommand]) -> None:
    folder, first = small
    said = exchange("compare", "--resume", "small", "--results", folder.parent, "--json")
    assert (said.code, said.out) == (0, first.out), said.err
    assert f"tables: {folder.parent / 'tables'} (" in said.err
    runs = pandas.read_parquet(folder.parent / "tables" / "runs")
    assert set(runs["experiment"]) == {"small"}
    assert sorted(runs["run"]) == sorted(run["run"] for arm in first.record["arms"] for run in arm["runs"])


def test_every_number_is_that_of_the_run_it_names(small: tuple[Path, FinishedCommand]) -> None:
    folder, said = small
    for arm in said.record["arms"]:
        runs = {run["repeat"]: orjson.loads((folder / run["run"] / "run.json").read_bytes()) for run in arm["runs"]}
        assert sorted(runs) == [1, 2]
        for repeat, run in runs.items():
            assert run["settings"]["transport"] == arm["contender"]
            assert run["settings"]["orders_per_s"] == arm["settings"]["orders_per_s"]
            assert arm["metrics"]["due_p99_us"]["by_repeat"][str(repeat)] == run["completion_us"]["due"]["p99"]
            cpu_s = sum(part["cpu_s"] for part in run["components"].values())
            expected = cpu_s / run["counts"]["orders_answered"] * 1e6
            assert arm["metrics"]["cpu_s_per_million"]["by_repeat"][str(repeat)] == pytest.approx(expected)


def test_arms_at_one_rate_have_the_same_orders_in_a_repeat(small: tuple[Path, FinishedCommand]) -> None:
    """The next repeat has other orders."""
    folder, said = small
    for block in said.record["blocks"]:
        sums: dict[int, set[str]] = {}
        for run in (run for arm in said.record["arms"] if arm["block"] == block for run in arm["runs"]):
            made = orjson.loads((folder / run["run"] / "run.json").read_bytes())
            sums.setdefault(run["repeat"], set()).add(made["checksums"]["orders"])
        assert [len(each) for each in sums.values()] == [1, 1]
        assert sums[1] != sums[2]


def test_a_plan_that_can_reach_no_verdict_says_so_first_and_runs(small: tuple[Path, FinishedCommand]) -> None:
    _, said = small
    assert "2 repeats cannot reach a verdict: 6 are needed" in said.err.partition("run 1 of")[0]
    assert {verdict["outcome"] for verdict in said.record["verdicts"]} <= {"cannot tell", "not compared"}


def test_the_page_is_one_file_whose_links_lead_to_the_runs(small: tuple[Path, FinishedCommand]) -> None:
    folder, said = small
    page = (folder / "comparison.html").read_text()
    links = re.findall(r'href="(?!data:)([^"#]+)"', page)
    assert len(links) == 8
    assert [link for link in links if not (folder / unquote(link)).exists()] == []
    assert "src=" not in page
    assert page.count("<svg") == 3 + 4  # ours, and the paper's
    assert [verdict["sentence"] for verdict in said.record["verdicts"] if verdict["sentence"] not in page] == []


def test_the_table_fits_80_columns(small: tuple[Path, FinishedCommand]) -> None:
    folder, _ = small
    shown = compare(folder.parent, "--resume", "small", "--no-spark")
    assert shown.code == 0, shown.err
    assert "completion p50 from due time" in shown.out
    assert max(map(len, shown.out.partition("\n\n")[2].splitlines()[:-1])) <= 80


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.long)])
def test_an_interrupted_comparison_says_how_to_go_on_and_does(number: signal.Signals, tmp_path: Path) -> None:
    words = command("compare", *FAST, "--seconds", 0.6, "--results", tmp_path, "--name", "mine")
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    until(lambda: list(tmp_path.glob("mine/01-*/run.json")), "the first run's record")
    process.send_signal(number)
    _, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 128 + number
    assert "exchange compare --resume mine goes on" in err
    assert "Traceback" not in err
    made = {path for path in tmp_path.glob("mine/0[12]-*/run.json") if b'"partial"' not in path.read_bytes()}
    assert 1 <= len(made) < 4
    said = compare(tmp_path, "--resume", "mine", "--json", "--no-spark")
    assert (said.code, said.record["status"]) == (0, "complete"), said.err
    done = [run["run"] for arm in said.record["arms"] for run in arm["runs"]]
    assert {path.parent.name for path in made} <= set(done)
    assert len(done) == 4


def test_a_rate_without_a_schedule_is_compared_by_what_it_carries(tmp_path: Path) -> None:
    said = compare(tmp_path, *FAST, "--rates", "max", "--repeats", 1, "--json")
    assert said.code == 0, said.err
    assert [verdict["metric"] for verdict in said.record["verdicts"]] == ["orders_per_s", "cpu_s_per_million"]
    assert "due_p50_us" not in said.record["arms"][0]["metrics"]


def test_a_dry_run_prints_the_plan_and_its_length_and_leaves_nothing(tmp_path: Path) -> None:
    said = CliRunner().invoke(main, ["compare", *FAST, "--dry-run", "--results", str(tmp_path)])
    assert said.output.splitlines()[0] == "memory, memory#2; 1 rate, 2 repeats: 4 runs and 2 warm-ups, about 16 s"
    assert [line.split()[0] for line in said.output.splitlines()[-6:]] == ["warm-up"] * 2 + ["repeat"] * 4
    assert max(map(len, said.output.splitlines())) <= 80
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--transports", "zeromq,pigeon"], "known are"),
        (["--transports", "zeromq"], "two or more"),
        (["--rates", "1000,fast"], "'fast' is no rate"),
        (["--rates", "1000,1e3"], "each once"),
        (["--rates", ""], "one or more"),
        (["--rates", "0"], "--rates is 0"),
        (["--repeats", "0"], "--repeats is 0"),
        (["--seconds", "0"], "--seconds"),
        (["--packing", "0"], "packing is 0"),
        (["--delivery", "acked"], "has no broker"),
        (["--name", "a/b"], "no name"),
        (["--resume", "nothing"], "nothing to resume"),
        (["--resume", "nothing", "--rates", "1000"], "leave out --rates"),
        pytest.param(
            ["--transports", "tcp,zeromq?calls=slow", "--seconds", "0.1"], "compiled, plain", marks=pytest.mark.long
        ),
    ],
)
def test_a_mistake_is_named_and_leaves_nothing(words: list[str], said: str, tmp_path: Path) -> None:
    refused = CliRunner().invoke(main, ["compare", *words, "--results", str(tmp_path)])
    assert refused.exit_code == 2, refused.output
    assert said in " ".join(refused.output.split())
    assert list(tmp_path.iterdir()) == []


def test_a_comparison_that_exists_is_not_written_into(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    refused = CliRunner().invoke(main, ["compare", *FAST, "--name", "mine", "--results", str(tmp_path)])
    assert "exists already" in refused.output
    assert list((tmp_path / "mine").iterdir()) == []
