"""The outcomes of a gate as JUnit XML and as Markdown."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from exchange_simulation.gates.gate_report import GateReport, GateTable
from exchange_simulation.gates.junit import write_junit
from exchange_simulation.gates.markdown import markdown_of
from exchange_simulation.reports.gate_outcomes import GateCheck
from exchange_simulation.reports.gate_sentences import show_gate

REPORT = GateReport(
    command="compare",
    folder="results/first",
    headline="zeromq is 2.0 times faster than tcp",
    checks=[
        GateCheck(
            condition="p50 of tcp over 3x zeromq",
            requirement="p50 of tcp not over 3 times zeromq's",
            outcome="passed",
            sentence="p50 of tcp is 2.0 times zeromq's (1.9..2.1), not over 3",
        ),
        GateCheck(
            condition="p99 of tcp over 1x <b>",
            requirement="p99 of tcp not over 1 times <b>'s",
            outcome="failed",
            sentence="p99 of tcp is 2.0 times <b>'s, over 1 | 3",
        ),
        GateCheck(
            condition="p99 of tcp over 2x zeromq",
            requirement="p99 of tcp not over 2 times zeromq's",
            outcome="undecided",
            sentence="whether p99 of tcp is over 2 times zeromq's: too noisy to say",
        ),
    ],
    doubts=["the machine: others took 20% of all processors"],
    table=GateTable(titles=("orders/s", "p50 us"), rows=[["1,000", "120"]]),
    seconds=2.5,
)


def test_junit_has_a_case_for_each_condition(tmp_path: Path) -> None:
    suite = ElementTree.parse(write_junit(tmp_path / "gate.xml", REPORT)).getroot()
    assert suite.attrib["tests"] == "3"
    assert suite.attrib["failures"] == "1"
    assert suite.attrib["skipped"] == "1"
    passed, failed, undecided = suite.findall("testcase")
    assert passed.attrib["name"] == "p50 of tcp not over 3 times zeromq's"
    assert [child.tag for child in passed] == ["system-out"]
    assert passed.findtext("system-out") == "p50 of tcp is 2.0 times zeromq's (1.9..2.1), not over 3"
    failure = failed.find("failure")
    assert failure is not None
    assert failure.attrib["message"] == "p99 of tcp is 2.0 times <b>'s, over 1 | 3"
    skipped = undecided.find("skipped")
    assert skipped is not None
    assert skipped.attrib["message"] == "whether p99 of tcp is over 2 times zeromq's: too noisy to say"
    output = suite.findtext("system-out") or ""
    assert "others took 20%" in output
    assert "the exit code says nothing about 'p99 of tcp over 2x zeromq': none of its checks was decided" in output


def test_junit_names_a_time_only_if_it_is_known(tmp_path: Path) -> None:
    """Regression: a comparison, whose record has no length, was said to have taken 0.000 s."""
    with_time = ElementTree.parse(write_junit(tmp_path / "known.xml", REPORT)).getroot()
    without = ElementTree.parse(write_junit(tmp_path / "unknown.xml", replace(REPORT, seconds=None))).getroot()
    assert with_time.attrib["time"] == "2.500"
    assert "time" not in without.attrib


def test_markdown_has_the_answer_the_conditions_and_the_figures() -> None:
    lines = markdown_of(REPORT).splitlines()
    assert lines[0] == "### exchange compare: zeromq is 2.0 times faster than tcp"
    assert "| passed | p50 of tcp is 2.0 times zeromq's (1.9..2.1), not over 3 |" in lines
    assert "| **failed** | p99 of tcp is 2.0 times &lt;b>'s, over 1 \\| 3 |" in lines
    assert "- the machine: others took 20% of all processors" in lines
    assert "- the exit code says nothing about 'p99 of tcp over 2x zeromq': none of its checks was decided" in lines
    assert "| 1,000 | 120 |" in lines
    assert lines[-1] == "Folder: `results/first`"


LONG = "too noisy to say: others took more than 5% of all processors beside 10 of 10 repeats"


@pytest.mark.parametrize(("is_terminal", "lines"), [(True, 3), (False, 1)])
def test_a_long_sentence_is_wrapped_between_words_in_a_terminal_alone(
    is_terminal: bool, lines: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setattr("sys.stdout.isatty", lambda: is_terminal)
    sentence = f"whether p50 of tcp is over 2 times zeromq's: {LONG}"
    check = GateCheck(condition="p50", requirement="p50", outcome="undecided", sentence=sentence)
    show_gate(replace(REPORT, checks=[check], doubts=[]), to_stderr=False)
    shown = capsys.readouterr().out.splitlines()[:lines]
    assert all(len(line) <= 60 for line in shown) == is_terminal
    assert " ".join(shown) == check.line
