"""`exchange paper` measures part by part: one that fails loses itself alone, and an interrupted paper goes on."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import exchange_simulation
from exchange_simulation import NotWhole
from exchange_simulation.cli.main import main
from exchange_simulation.experiments.trials.plan import write_plan
from exchange_simulation.papers import catalogue
from exchange_simulation.papers.claims import CANNOT_TELL, Claim
from exchange_simulation.papers.extent import FULL, QUICK
from exchange_simulation.papers.paper import Absent, BenchPart, ExchangePart, Paper, PaperItem
from exchange_simulation.papers.paper_folder import caveats_of
from exchange_simulation.papers.statistics import constant, figure_at, ratio

OVER_TCP = "--transport tcp --sizes 64 --count 40000 --keep-noisy"
SMALL = BenchPart(
    name="small",
    benchmark="throughput",
    items=(PaperItem("figure 1", "rate", quick="one size alone"),),
    full=OVER_TCP,
    quick=OVER_TCP,
    repeats=2,
)
BROKEN = BenchPart(
    name="broken",
    benchmark="throughput",
    items=(PaperItem("figure 2", "rate over a network that is not there"),),
    full=f"{OVER_TCP} --cpus publisher=4095",
    quick=f"{OVER_TCP} --cpus publisher=4095",
)
PAPER = Paper(
    name="tiny",
    title="A tiny paper",
    citation="Nobody: A tiny paper.",
    contents=(BROKEN, SMALL, Absent(PaperItem("figure 3", "InfiniBand"), "it takes InfiniBand")),
    claims=(
        Claim(
            "figure 1",
            "Messages flow.",
            ratio("messages/s over 1", "small", figure_at("messages_per_s", size_bytes=64), constant(1.0)),
            at_least=1.0,
        ),
    ),
)


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(catalogue.PAPERS, "tiny", PAPER)


def measure(results: Path, *further: str) -> tuple[int, str, str]:
    """Run `exchange paper tiny`; returns the exit code, and what was printed on stdout and on stderr."""
    finished = CliRunner().invoke(
        main, ["paper", "tiny", "--quick", "--results", str(results), "--name", "p", *further]
    )
    return finished.exit_code, finished.stdout, finished.stderr


@pytest.mark.usefixtures("tiny")
def test_a_part_that_fails_loses_itself_alone(tmp_path: Path) -> None:
    code, output, errors = measure(tmp_path)

    record = json.loads((tmp_path / "p" / "paper.json").read_text())
    page = (tmp_path / "p" / "paper.html").read_text()
    assert code == 1
    assert errors.startswith("tiny: 2 parts, in all about 2 s on a quiet machine\n")
    assert [part["status"] for part in record["parts"]] == ["failed", "complete"]
    assert "broken failed, the others go on" in errors
    assert "broken, failed" in output
    assert record["claims"][0]["outcome"] == CANNOT_TELL
    assert record["claims"][0]["why"] == "2 repeats, and a verdict needs 6"
    assert "It takes InfiniBand." in page
    assert "In the short form: one size alone" in page
    assert "small/bench.html" in page
    assert "Nothing is here" in page


@pytest.mark.usefixtures("tiny")
def test_a_paper_is_measured_from_python_and_found_again(tmp_path: Path) -> None:
    sentences: list[str] = []
    with pytest.raises(NotWhole) as raised:
        exchange_simulation.paper("tiny", quick=True, results=tmp_path, name="p", on_progress=sentences.append)
    outcome = raised.value.outcome
    assert isinstance(outcome, exchange_simulation.PaperOutcome)
    assert repr(outcome) == f"<PaperOutcome {tmp_path / 'p'}: {outcome}>"
    assert str(outcome).startswith("tiny, partial: 1 of 1 claims were seen as the paper says in 2 repeats")
    assert [row["outcome"] for row in outcome.rows()] == [CANNOT_TELL]
    assert any("broken failed, the others go on" in sentence for sentence in sentences)
    assert [type(exchange_simulation.open(part)).__name__ for part in outcome.parts] == ["Benchmark"]
    [listed] = exchange_simulation.list_results(tmp_path)
    assert repr(listed) == repr(outcome)


@pytest.mark.usefixtures("tiny")
def test_a_paper_goes_on_with_the_parts_that_it_lacks(tmp_path: Path) -> None:
    measure(tmp_path)
    measured = (tmp_path / "p" / "small" / "bench.json").stat().st_mtime_ns
    resume = ["paper", "tiny", "--results", str(tmp_path), "--resume", "p"]

    planned = CliRunner().invoke(main, [*resume, "--dry-run"])

    commands = [line.partition("  # ") for line in planned.stdout.splitlines()]
    assert commands[0][2].startswith("cannot be measured here: --cpus is publisher=4095")
    assert commands[1][2] == "measured already"
    assert planned.stdout.splitlines()[2:] == [
        "# 1 of 2 parts left, in all about 0 s on a quiet machine",
        f"# the results are in {tmp_path / 'p'}",
    ]

    file = tmp_path / "p" / "paper.json"
    first = json.loads(file.read_text())
    first["host"] |= {"cpu": "that of the first measurement"}
    first["versions"] |= {"numba": "0.1"}
    file.write_text(json.dumps(first))

    finished = CliRunner().invoke(main, resume)

    assert finished.exit_code == 1
    assert "2 of 2, small: measured already" in finished.stderr
    record = json.loads(file.read_text())
    assert record["host"] == first["host"]
    assert record["versions"] == first["versions"]
    assert record["caveats"][0].startswith("small: measured with other versions than the first part: numba ")
    assert (tmp_path / "p" / "small" / "bench.json").stat().st_mtime_ns == measured


def interrupt_after_repeat_1(bench: Path) -> dict[str, Any]:
    """Make a record as an interruption in its second repeat leaves it; returns the record."""
    record: dict[str, Any] = json.loads(bench.read_text())
    for row in record["rows"]:
        row["repeats"] = row["repeats"][:1]
    record |= {"status": "partial", "reasons": ["interrupted"]}
    bench.write_text(json.dumps(record))
    return record


@pytest.mark.usefixtures("tiny")
def test_a_part_that_was_interrupted_goes_on_in_the_middle_of_its_repeats(tmp_path: Path) -> None:
    measure(tmp_path)
    bench = tmp_path / "p" / "small" / "bench.json"
    interrupted = interrupt_after_repeat_1(bench)

    finished = CliRunner().invoke(main, ["paper", "tiny", "--results", str(tmp_path), "--resume", "p"])

    record = json.loads(bench.read_text())
    assert "throughput: goes on, after 1 measurement" in finished.stderr
    assert record["status"] == "complete"
    assert record["resumed"] == 1
    assert record["started_at"] == interrupted["started_at"]
    assert record["duration_s"] > interrupted["duration_s"]
    assert record["rows"][0]["repeats"][0] == interrupted["rows"][0]["repeats"][0]
    assert [repeat["repeat"] for repeat in record["rows"][0]["repeats"]] == [1, 2]
    assert any("interrupted and went on once" in caveat for caveat in record["caveats"])


@pytest.mark.usefixtures("tiny")
def test_an_interrupted_part_that_another_command_made_is_kept_beside_and_measured_anew(tmp_path: Path) -> None:
    measure(tmp_path)
    bench = tmp_path / "p" / "small" / "bench.json"
    interrupted = interrupt_after_repeat_1(bench)
    other_settings = {**interrupted["settings"], "count": 30_000}
    bench.write_text(json.dumps({**interrupted, "settings": other_settings}))

    CliRunner().invoke(main, ["paper", "tiny", "--results", str(tmp_path), "--resume", "p"])

    assert json.loads(bench.read_text())["status"] == "complete"
    assert json.loads(bench.read_text())["resumed"] == 0
    assert json.loads((tmp_path / "p" / "small.interrupted-1" / "bench.json").read_text())["status"] == "partial"


def test_the_exchange_goes_on_with_the_plan_of_the_same_command(tmp_path: Path) -> None:
    (part,) = (part for part in catalogue.PAPERS["amqp"].parts if isinstance(part, ExchangePart))
    write_plan(tmp_path, part.plan(QUICK))

    assert part.can_go_on(tmp_path, QUICK)
    assert not part.can_go_on(tmp_path, FULL)
    assert not part.can_go_on(tmp_path, replace(QUICK, repeats=1))
    assert not part.can_go_on(tmp_path / "nothing", QUICK)


@pytest.mark.usefixtures("tiny")
def test_options_that_would_change_a_resumed_paper_are_refused(tmp_path: Path) -> None:
    measure(tmp_path)

    finished = CliRunner().invoke(main, ["paper", "tiny", "--quick", "--results", str(tmp_path), "--resume", "p"])

    assert finished.exit_code == 2
    assert "--resume goes on as it was begun: leave out --quick and --full" in finished.stderr


@pytest.mark.usefixtures("tiny")
def test_a_resumed_paper_keeps_its_networks_and_transports(tmp_path: Path) -> None:
    measure(tmp_path, "--transport", "zeromq")

    refused = CliRunner().invoke(
        main, ["paper", "tiny", "--results", str(tmp_path), "--resume", "p", "--transport", "nng"]
    )
    finished = CliRunner().invoke(main, ["paper", "tiny", "--results", str(tmp_path), "--resume", "p"])

    record = json.loads((tmp_path / "p" / "small" / "bench.json").read_text())
    assert {row["transport"] for row in record["rows"]} == {"tcp", "zeromq"}
    assert "leave out --transport" in refused.stderr
    assert "broken: exchange bench throughput --transport tcp,zeromq" in finished.stderr


@pytest.mark.usefixtures("tiny")
def test_each_cell_is_measured_as_often_as_a_user_says(tmp_path: Path) -> None:
    measure(tmp_path, "--repeats", "1")

    record = json.loads((tmp_path / "p" / "paper.json").read_text())
    part = json.loads((tmp_path / "p" / "small" / "bench.json").read_text())
    page = (tmp_path / "p" / "paper.html").read_text()
    assert [repeat["repeat"] for row in part["rows"] for repeat in row["repeats"]] == [1]
    assert record["repeats"] == 1
    assert record["parts"][1]["command"].endswith("--repeats 1")
    assert record["claims"][0]["why"] == "1 repeat, and a verdict needs 6"
    assert "1 of 1 claims were seen as the paper says in 1 repeat, 0 otherwise; a verdict needs 6" in page
    assert "cannot tell, seen as it says" in page
    assert "in 1 repeat</td>" in page
    assert "with 1 repeat of each cell" in page


@pytest.mark.usefixtures("tiny")
def test_a_resumed_paper_keeps_its_number_of_repeats(tmp_path: Path) -> None:
    measure(tmp_path, "--repeats", "3")
    interrupt_after_repeat_1(tmp_path / "p" / "small" / "bench.json")
    words = ["paper", "tiny", "--results", str(tmp_path), "--resume", "p"]

    refused = CliRunner().invoke(main, [*words, "--repeats", "1"])
    CliRunner().invoke(main, words)

    part = json.loads((tmp_path / "p" / "small" / "bench.json").read_text())
    assert refused.exit_code == 2
    assert "--resume goes on as it was begun: leave out --repeats" in refused.stderr
    assert [repeat["repeat"] for repeat in part["rows"][0]["repeats"]] == [1, 2, 3]


@pytest.mark.usefixtures("tiny")
def test_a_rerun_asks_for_what_the_first_measurement_was_asked_for(tmp_path: Path) -> None:
    measure(tmp_path, "--repeats", "1", "--transport", "zeromq")

    CliRunner().invoke(main, ["results", "rerun", "p", "--results", str(tmp_path), "--name", "again"])

    record = json.loads((tmp_path / "again" / "paper.json").read_text())
    assert (record["quick"], record["repeats"], record["transports"]) == (True, 1, ["zeromq"])


@pytest.mark.usefixtures("tiny")
def test_a_number_of_repeats_that_no_command_writes_is_refused(tmp_path: Path) -> None:
    measure(tmp_path)
    file = tmp_path / "p" / "paper.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "repeats": 0}))

    refused = CliRunner().invoke(main, ["paper", "tiny", "--results", str(tmp_path), "--resume", "p"])

    assert refused.exit_code == 2
    assert "paper.json of p is damaged: repeats is 0" in refused.stderr


def test_parts_that_were_measured_with_other_versions_have_a_caveat() -> None:
    first = {"numba": "1.0", "numpy": "2.0", "uncommitted_changes": False}
    records = {
        "a": {"caveats": [], "versions": {**first, "numba": "1.1"}},
        "b": {"caveats": [], "versions": {**first, "uncommitted_changes": True}},
        "c": {"caveats": [], "conditions": {"versions": {**first, "numba": "1.1"}}},
    }

    assert caveats_of(records, first) == ["a, c: measured with other versions than the first part: numba 1.1"]


def test_a_caveat_of_several_parts_stands_once() -> None:
    records = {"first": {"caveats": ["busy"]}, "second": {"caveats": ["busy", "slow"]}}

    assert caveats_of(records, {}) == ["first, second: busy", "second: slow"]


@pytest.mark.usefixtures("tiny")
def test_another_papers_folder_cannot_be_resumed(tmp_path: Path) -> None:
    measure(tmp_path)

    finished = CliRunner().invoke(main, ["paper", "amqp", "--results", str(tmp_path), "--resume", "p"])

    assert finished.exit_code == 2
    assert "was made by exchange paper tiny" in finished.stderr


@pytest.mark.usefixtures("tiny")
def test_an_export_has_plan_claims_values_figures_and_citation(tmp_path: Path) -> None:
    target = tmp_path / "artefact"

    measure(tmp_path / "results", "--export", str(target))

    commands = (target / "commands.txt").read_text().splitlines()
    (claim,) = csv.DictReader((target / "claims.csv").read_text().splitlines())
    assert commands[1] == f"exchange bench throughput {OVER_TCP} --repeats 2"
    assert claim["sentence"] == "Messages flow."
    assert claim["outcome"] == CANNOT_TELL
    assert r"\begin{tabular}" in (target / "claims.tex").read_text()
    assert (target / "citation.txt").read_text() == "Nobody: A tiny paper.\n"
    assert json.loads((target / "machine.json").read_text())["versions"]
    assert json.loads((target / "small" / "record.json").read_text())["rows"]


@pytest.mark.usefixtures("tiny")
def test_results_list_show_and_report_know_a_paper(tmp_path: Path) -> None:
    measure(tmp_path)

    listed = CliRunner().invoke(main, ["results", "list", "--results", str(tmp_path)])
    shown = CliRunner().invoke(main, ["results", "show", "p", "--results", str(tmp_path)])
    reported = CliRunner().invoke(main, ["report", str(tmp_path / "p")])

    assert "paper tiny" in listed.stdout
    assert "1 of 1 claims were seen as the paper says in 2 repeats" in " ".join(shown.stdout.split())
    assert reported.exit_code == 0
    assert "page: " in reported.stdout


@pytest.mark.usefixtures("tiny")
def test_a_record_without_a_part_that_the_paper_has_now_still_has_a_page(tmp_path: Path) -> None:
    measure(tmp_path)
    file = tmp_path / "p" / "paper.json"
    record = json.loads(file.read_text())
    record["parts"] = [part for part in record["parts"] if part["part"] != "broken"]
    file.write_text(json.dumps(record))

    reported = CliRunner().invoke(main, ["report", str(tmp_path / "p")])

    assert reported.exit_code == 0, reported.output
    assert "Nothing is here: it has not been measured yet" in (tmp_path / "p" / "paper.html").read_text()


@pytest.mark.usefixtures("tiny")
def test_a_report_says_what_became_of_each_part(tmp_path: Path) -> None:
    """paper.json is written between parts, so that of a measurement that was killed knows nothing of the last one."""
    measure(tmp_path)
    file = tmp_path / "p" / "paper.json"
    record = json.loads(file.read_text())
    broken, small = record["parts"]
    broken["command"] = "exchange bench of-an-older-version"
    small |= {"status": "not measured", "reasons": []}
    file.write_text(json.dumps(record))

    reported = CliRunner().invoke(main, ["report", str(tmp_path / "p"), "--json"])

    assert reported.exit_code == 0, reported.output
    parts = json.loads(reported.stdout)["parts"]
    assert parts[0] == broken
    assert (parts[1]["status"], parts[1]["reasons"]) == ("complete", [])
    assert parts[1]["command"] == small["command"]
