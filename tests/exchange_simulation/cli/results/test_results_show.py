"""`exchange results show`: a run and a trial as their commands presented them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from click.testing import CliRunner
from kept_folders import figures, put_bytes, put_run, put_trial, record, results

from exchange_simulation.cli.main import main
from exchange_simulation.reports.comparison.table import show as show_comparison
from exchange_simulation.reports.run.terminal import show_record


@pytest.fixture(scope="module")
def results_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results")
    put_run(folder, "first", settings={"packing": 8})
    put_run(folder, "20261121-tcp-aabb01")
    put_run(folder, "20261121-amqp-ccbb01", settings={"transport": "amqp"})
    put_trial(folder, "trial")
    (folder / "notes").mkdir()
    return folder


def test_a_run_is_shown_as_by_exchange_run_with_conditions(
    results_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outcome = results(results_folder, "show", "first")
    show_record(record("first", settings={"packing": 8}))
    assert outcome.exit_code == 0
    assert outcome.output.startswith(capsys.readouterr().out)
    words = " ".join(outcome.output.split())
    assert "settings packing 8 host cpu AMD EPYC, cores 2" in words
    assert "exchange 0.1.0 TCP_NODELAY gateway on network none emulated" in words
    assert max(map(len, outcome.output.splitlines())) <= 80


def test_a_trial_is_shown_as_its_command_shows_it(results_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    show_comparison(orjson.loads((results_folder / "trial" / "comparison.json").read_bytes()))
    assert results(results_folder, "show", "trial").output == capsys.readouterr().out


def test_a_name_may_be_a_path_or_the_end_of_one_name(results_folder: Path) -> None:
    """A run of a trial is named with its trial before it."""
    inner = next(path for path in (results_folder / "trial").iterdir() if path.is_dir())
    for name, shown in {
        str(results_folder / "first"): "first",
        f"trial/{inner.name}": inner.name,
        "aabb01": "20261121-tcp-aabb01",
    }.items():
        assert orjson.loads(results(results_folder, "show", name, "--json").stdout)["name"] == shown


def test_a_report_finds_a_folder_by_an_end_or_a_beginning_of_its_name(tmp_path: Path) -> None:
    put_trial(tmp_path, "20261121-144220-compare-2f5519")
    put_run(tmp_path, "20261122-100000-zeromq-1000-aa5519")
    for name in ("2f5519", "20261121-1"):
        reported = CliRunner().invoke(main, ["report", name, "--results", str(tmp_path)])
        assert reported.exit_code == 0, reported.output
    refused = CliRunner().invoke(main, ["report", "5519", "--results", str(tmp_path)])
    assert "2 names in" in refused.output
    assert "begin or end with 5519" in refused.output


def test_json_is_the_record_s_own_bytes(results_folder: Path) -> None:
    for name, file in {"first": "run.json", "trial": "comparison.json"}.items():
        shown = results(results_folder, "show", name, "--json").stdout_bytes
        assert shown == (results_folder / name / file).read_bytes()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("frist", "no run or trial called frist (did you mean first?)"),
        ("bb01", "2 names in"),  # two names end with it
        ("notes", "no folder of ours"),
        ("x" * 300, "no run or trial"),
    ],
)
def test_a_name_of_no_run_or_of_several_is_refused(results_folder: Path, name: str, message: str) -> None:
    refused = results(results_folder, "show", name)
    assert refused.exit_code == 2
    assert message in refused.output


def test_a_newer_record_is_never_interpreted(tmp_path: Path) -> None:
    put_run(tmp_path, "tomorrow", schema=2)
    for words in (["show", "tomorrow"], ["diff", "tomorrow", "tomorrow"], ["rerun", "tomorrow"]):
        outcome = results(tmp_path, *words)
        assert outcome.exit_code == 1
        assert outcome.stdout == ""
        assert "schema 2, and this version of exchange reads 1" in outcome.stderr


def test_a_trial_of_an_unknown_command_is_refused_by_its_name(tmp_path: Path) -> None:
    trial = put_trial(tmp_path, "trial")
    for name in ("plan.json", "comparison.json"):
        content = orjson.loads((trial / name).read_bytes())
        (trial / name).write_bytes(orjson.dumps({**content, "study": "capacity"}))
    for word in ("show", "rerun"):
        output = results(tmp_path, word, "trial").stderr
        assert "made by exchange capacity, which this version does not have" in output


def spoilt(good: Any, depth: int = 0) -> Iterator[Any]:
    """Yield damaged copies: each value once replaced by one of another type, each key of two levels once left out."""
    if isinstance(good, dict):
        for place in good:
            for other in spoilt(good[place], depth + 1):
                yield {**good, place: other}
            if depth < 2:
                yield {name: value for name, value in good.items() if name != place}
    if good is None or isinstance(good, str):
        yield 7
    else:
        yield "x"


def test_no_damage_to_a_record_leads_to_a_traceback(tmp_path: Path) -> None:
    put_run(tmp_path, "good")
    put_bytes(tmp_path, "bad", b"")
    small = record("bad", lag_us={}, completion_us={"due": figures(1.0)})
    small["settings"] = {name: small["settings"][name] for name in ("transport", "orders_per_s", "seed", "network")}
    for content in spoilt(small):
        (tmp_path / "bad" / "run.json").write_bytes(orjson.dumps(content))
        for words in (["list"], ["show", "bad"], ["diff", "good", "bad"]):
            outcome = results(tmp_path, *words)
            assert outcome.exception is None or isinstance(outcome.exception, SystemExit), (words, content)


@pytest.mark.parametrize(("share", "percent"), [(0.47, "47%"), (0.053, "5.3%")])
def test_noise_of_the_machine_is_printed_before_the_figures(
    share: float, percent: str, capsys: pytest.CaptureFixture[str]
) -> None:
    show_record({**record("first"), "noise": {"share_of_all_cpus": share}})
    before_figures = capsys.readouterr().out.partition("microseconds")[0]
    assert f"the machine: others took {percent} of all processors" in before_figures


@pytest.mark.parametrize("share", [0.03, None])
def test_little_or_unknown_noise_of_the_machine_is_not_printed(
    share: float | None, capsys: pytest.CaptureFixture[str]
) -> None:
    show_record({**record("first"), "noise": {"share_of_all_cpus": share}})
    before_figures = capsys.readouterr().out.partition("microseconds")[0]
    assert "the machine:" not in before_figures


def test_a_pause_of_the_broker_is_printed_before_the_figures(capsys: pytest.CaptureFixture[str]) -> None:
    show_record({**record("first"), "broker": {"slowest_look_s": 2.04}})
    before_figures = capsys.readouterr().out.partition("microseconds")[0]
    assert "the broker answered a look at its queues after 2.0 s" in before_figures


@pytest.mark.parametrize(
    ("transport", "sentence"),
    [
        ("redis?kind=pubsub", "guarantee: lossy; what is under way is lost if its reader dies, and lost if the server"),
        ("redis?kind=stream", "guarantee: durable, synced once a second; what is under way is kept if its reader dies"),
        ("zeromq", ""),
    ],
)
def test_a_run_over_a_server_says_its_guarantee(
    transport: str, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    show_record(record("first", settings={"transport": transport}))
    output = " ".join(capsys.readouterr().out.split())
    assert sentence in output
    assert ("guarantee:" in output) == bool(sentence)
