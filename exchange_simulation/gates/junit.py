"""The outcomes of a gate as JUnit XML, which pipelines show as tests."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

from exchange_simulation.gates.gate_report import GateReport
from exchange_simulation.launching.files import write_whole
from exchange_simulation.reports.gate_outcomes import FAILED, UNDECIDED


def write_junit(file: Path, report: GateReport) -> Path:
    """Write a test case for each condition: failed ones are failures, undecided ones are skipped."""
    return write_whole(file, junit_xml(report))


def junit_xml(report: GateReport) -> bytes:
    """Return the file's content."""
    outcomes = [check.outcome for check in report.checks]
    suite = ElementTree.Element(
        "testsuite",
        name=f"exchange {report.command}: {report.folder}",
        tests=str(len(outcomes)),
        failures=str(outcomes.count(FAILED)),
        skipped=str(outcomes.count(UNDECIDED)),
        errors="0",
    )
    if report.seconds is not None:
        suite.set("time", f"{report.seconds:.3f}")
    for check in report.checks:
        case = ElementTree.SubElement(suite, "testcase", classname=f"exchange.{report.command}", name=check.requirement)
        if check.outcome == FAILED:
            ElementTree.SubElement(case, "failure", message=check.sentence).text = check.line
        elif check.outcome == UNDECIDED:
            ElementTree.SubElement(case, "skipped", message=check.sentence)
        else:
            ElementTree.SubElement(case, "system-out").text = check.sentence
    output = ElementTree.SubElement(suite, "system-out")
    output.text = "\n".join([report.headline, *report.notes_on_undecided, *report.notes])
    ElementTree.indent(suite)
    return ElementTree.tostring(suite, encoding="utf-8", xml_declaration=True) + b"\n"
