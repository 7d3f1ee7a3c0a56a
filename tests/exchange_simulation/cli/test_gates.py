"""Gates from the command line: exit codes, files, baselines, and what Prometheus scrapes."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import orjson
import pytest
from click.testing import CliRunner, Result

from exchange_simulation.cli.main import main
from exchange_simulation.gates.checks import GATE_MISSED
from tests.exchange_simulation.cli.results.kept_folders import put_run, put_trial

SHORT_RUN = ("run", "--transport", "memory", "--orders", "2000", "--no-page")
AT_MAXIMUM = (*SHORT_RUN, "--rate", "max")
"""No order is due, so the run cannot be late on a busy machine."""


def exchange(*words: object) -> Result:
    return CliRunner().invoke(main, [*map(str, words)], env={"COLUMNS": "120"})


def test_a_run_that_holds_its_bound_ends_with_0_and_one_that_misses_it_with_3(tmp_path: Path) -> None:
    held = exchange(*AT_MAXIMUM, "--results", tmp_path, "--slo", "handed over p50 <= 100s")
    assert held.exit_code == 0, held.output
    assert "held: handed over p50 <= 100s: " in held.stdout
    junit = tmp_path / "gate.xml"
    markdown = tmp_path / "gate.md"
    bounds = ("--slo", "handed over p50 <= 1ns, loss = 0", "--slo", "handed over max <= 100s")
    missed = exchange(*AT_MAXIMUM, "--results", tmp_path, *bounds, "--junit", junit, "--markdown", markdown)
    assert missed.exit_code == GATE_MISSED, missed.output
    assert ElementTree.parse(junit).getroot().attrib["tests"] == "3"
    assert "| handed over p50 &lt;= 1ns | **missed** |" in markdown.read_text()


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("--slo", "p99 <= soon"), "is not understood"),
        (("--slo", "p99 <= 1ms", "--orders", "500"), "needs 1,000 orders, and the run has 500"),
        (("--slo", "p50 <= 1ms", "--rate", "max"), "bound the time from handing over"),
    ],
)
def test_a_bound_that_cannot_be_judged_is_refused_before_the_run(
    words: tuple[str, ...], problem: str, tmp_path: Path
) -> None:
    refused = exchange(*SHORT_RUN, "--results", tmp_path, *words)
    assert refused.exit_code == 2
    assert problem in refused.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("--fail-if", "p99 of amqp over 2x zeromq"), "'amqp' is not compared; there are zeromq, tcp"),
        (("--fail-if-slower", "10%"), "--fail-if-slower needs a baseline"),
        (("--against", "main"), "holds no such baseline or comparison"),
        (("--against", "main", "--fail-if-slower", "-5%"), "give percent above 0"),
    ],
)
def test_a_wrong_gate_is_refused_before_the_first_run(words: tuple[str, ...], problem: str, tmp_path: Path) -> None:
    refused = exchange("compare", "--results", tmp_path, *words)
    assert refused.exit_code == 2
    assert problem in refused.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_comparison_is_kept_as_a_baseline_and_is_not_listed_as_an_unknown_folder(tmp_path: Path) -> None:
    put_trial(tmp_path, "main")
    kept = exchange("results", "baseline", "main", "--results", tmp_path)
    assert kept.exit_code == 0, kept.output
    copy = tmp_path / "baselines" / "main.json"
    assert orjson.loads(copy.read_bytes()) == orjson.loads((tmp_path / "main" / "comparison.json").read_bytes())
    assert "not listed" not in exchange("results", "list", "--results", tmp_path).output


def test_a_run_is_no_baseline(tmp_path: Path) -> None:
    put_run(tmp_path, "first")
    refused = exchange("results", "baseline", "first", "--results", tmp_path)
    assert refused.exit_code == 2
    assert "holds no comparison.json" in refused.stderr


SAMPLE_LINE = re.compile(r'[a-z_]+\{([a-z_]+="([^"\\\n]|\\.)*",?)*\} [0-9.e+-]+')


def test_exported_figures_are_what_prometheus_reads(tmp_path: Path) -> None:
    put_run(tmp_path, "first", us=250.0, noise={"window_s": 1.0, "share_of_all_cpus": 0.25})
    put_trial(tmp_path, "second", us=100.0)
    exported = exchange("results", "export", "--prometheus", "--results", tmp_path)
    assert exported.exit_code == 0, exported.output
    lines = exported.stdout.splitlines()
    for line in lines:
        assert line.startswith(("# HELP ", "# TYPE ")) or SAMPLE_LINE.fullmatch(line), line
    labels = 'run="first",transport="zeromq",rate="8000"'
    assert f'exchange_run_completion_seconds{{{labels},clock="due",quantile="0.5"}} 0.00026' in lines
    assert f"exchange_run_noise_share{{{labels}}} 0.25" in lines
    assert not [line for line in lines if 'quantile="0.999"' in line and "first" in line], "1,999 orders have no p99.9"
    b_of_trial = 'comparison="second",contender="b",block="at 1,000 orders/s",rate="1000",clock="due",quantile="0.5"'
    assert f"exchange_arm_completion_seconds{{{b_of_trial}}} 0.0002" in lines
    assert len([line for line in lines if line.startswith("# TYPE exchange_run_completion_seconds")]) == 1


def test_an_export_into_a_file_appears_whole(tmp_path: Path) -> None:
    put_run(tmp_path / "results", "first")
    file = tmp_path / "exchange.prom"
    words = ("results", "export", "first", "--prometheus", "--output", file, "--results", tmp_path / "results")
    assert exchange(*words).exit_code == 0
    assert file.read_text().startswith("# HELP exchange_run_completion_seconds")
    assert exchange("results", "export", "--results", tmp_path / "results").exit_code == 2


def test_the_dashboard_draws_metrics_that_are_exported() -> None:
    from exchange_simulation.reports.prometheus import HELP

    dashboard = (Path(__file__).parents[3] / "examples" / "grafana-dashboard.json").read_text()
    drawn = set(re.findall(r"exchange_[a-z_]+", dashboard))
    assert drawn <= set(HELP)
    assert len(drawn) >= 4
