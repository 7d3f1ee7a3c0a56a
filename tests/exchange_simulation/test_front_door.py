"""The functions of `exchange_simulation` measure as the commands do, print nothing, and return figures."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import click
import pytest

import exchange_simulation as xs
from exchange_simulation.launching.run import MeasuredRun

pytestmark = pytest.mark.xdist_group("front door")


@pytest.fixture(scope="module")
def one_run(tmp_path_factory: pytest.TempPathFactory) -> xs.Run:
    return xs.run(transport="memory", rate="20k", orders="2k", results=tmp_path_factory.mktemp("results"))


def test_a_run_has_the_figures_of_its_record(one_run: xs.Run):
    due = one_run.record["completion_us"]["due"]
    assert one_run.status in {"complete", "saturated"}
    assert one_run.from_due is not None
    assert (one_run.p50_us, one_run.p99_us) == (due["p50"], due["p99"])
    assert one_run.from_due.count == due["count"] > 1900
    assert one_run.orders_per_s == one_run.record["rates"]["orders_per_s"]
    assert one_run.cpu_s.keys() == {"gateway", "engine", "reporter"}
    assert f"p50 {due['p50']:,.0f} us" in str(one_run)


def test_a_run_becomes_a_table_with_a_row_a_second(one_run: xs.Run):
    frame = one_run.to_pandas()
    assert frame["due_count"].sum() == one_run.record["completion_us"]["due"]["count"]
    assert one_run.to_arrow().column("second").to_pylist() == frame["second"].tolist()


def test_a_run_too_short_for_a_rate_has_the_column_all_the_same(tmp_path: Path):
    short = xs.run(transport="memory", rate="2k", orders=20, page=False, results=tmp_path)
    assert short.to_pandas()["orders_per_s"].isna().all()


def test_a_notebook_shows_the_page_of_a_run(one_run: xs.Run):
    shown = one_run._repr_html_()
    assert str(one_run) in shown
    assert "<iframe" in shown
    assert "&lt;svg" in shown


@pytest.mark.parametrize(
    ("call", "why"),
    [
        (
            lambda **folder: xs.run(transport="memory", duration=5, warm_up=10, **folder),
            "leaves nothing of a run of 5 s",
        ),
        (lambda **folder: xs.capacity(rate=50_000, **folder), "rate is no option here"),
        (lambda **folder: xs.capacity(pairs=4, **folder), "pairs is no option here"),
        (lambda **folder: xs.capacity(probes=0, **folder), "probes is 0; allowed is 3"),
        (lambda **folder: xs.capacity(pause=-1, **folder), "pause is -1; allowed is 0"),
        (lambda **folder: xs.compare(transport="tcp", **folder), "transport is no option here"),
        (lambda **folder: xs.compare(seconds=0, **folder), "seconds is 0; allowed is 0.01"),
        (lambda **folder: xs.compare(gateways=[0, 4], **folder), "0 is not in the range"),
        (lambda **folder: xs.compare(subscribers=[8, 8], **folder), "--subscribers has 8 twice"),
        (lambda **folder: xs.compare(engines=[1, 2], **folder), "engines is 2; allowed is at most 1, the number of"),
        (lambda **folder: xs.sweep({"rate": [1000, 2000]}, rate="4k", **folder), "rate is no option here"),
    ],
)
def test_what_a_command_refuses_is_refused_here_too(call: Any, why: str, tmp_path: Path):
    with pytest.raises(xs.BadOption, match=why):
        call(results=tmp_path)
    assert not list(tmp_path.iterdir())


SHORT: dict[str, Any] = {"repeats": 1, "seconds": 0.05}


@pytest.mark.parametrize(
    ("call", "why"),
    [
        (lambda **folder: xs.run(transport="memory", orders=10, depth=True, **folder), "--depth is for market data"),
        (
            lambda **folder: xs.run(transport="memory", rate="max", orders=10, pace="spin:50", **folder),
            "no order is due",
        ),
        (
            lambda **folder: xs.compare(["memory"] * 2, ["1k"], slow_subscriber="wait", **SHORT, **folder),
            "--slow-subscriber is for market data: give --subscribers too",
        ),
        (
            lambda **folder: xs.sweep({"packing": [1, 2]}, transport="memory", orders=10, depth=True, **folder),
            "--depth is for market data",
        ),
        (lambda **folder: xs.nagle(["tcp"], ["1k"], depth=True, **SHORT, **folder), "--depth is for market data"),
        (
            lambda **folder: xs.capacity(transport="memory", seconds=0.1, probes=3, depth=True, **folder),
            "--depth is for market data",
        ),
    ],
    ids=["run, depth", "run, pace", "compare", "sweep", "nagle", "capacity"],
)
def test_an_option_that_changes_nothing_is_refused(call: Any, why: str, tmp_path: Path):
    """Regression: the command refused it, and Python ignored it."""
    with pytest.raises(xs.BadOption, match=why):
        call(results=tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("nagle", [None, True])
def test_roles_that_are_none_are_refused_by_the_option(nagle: Any, tmp_path: Path):
    with pytest.raises(xs.BadOption, match="--nagle is"):
        xs.run(nagle=nagle, results=tmp_path)


@pytest.fixture
def no_pages_of_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """A trial's runs are measured without a page each; the trial has its own."""
    monkeypatch.setattr("exchange_simulation.experiments.trials.execution.write_page", lambda *_: None)


def test_nothing_is_printed_and_progress_goes_to_a_callback(tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    heard: list[str] = []
    xs.compare(
        ["memory", "memory"],
        ["5k"],
        repeats=1,
        seconds=0.05,
        redo_noisy=False,
        results=tmp_path,
        on_progress=heard.append,
    )
    assert capfd.readouterr() == ("", "")
    assert "2 runs" in heard[0]
    assert [line for line in heard if line.startswith("run 4 of 4: memory")]


def test_a_comparison_has_arms_and_verdicts(no_pages_of_runs: None, tmp_path: Path):
    found = xs.compare("memory,memory", ["5k"], repeats=2, seconds=0.05, redo_noisy=False, results=tmp_path)
    first, second = found.arms
    assert (first.transport, first.orders_per_s) == ("memory", 5000.0)
    assert first.due_p50_us.median == found.record["arms"][0]["metrics"]["due_p50_us"]["median"]
    assert {(verdict.first, verdict.second) for verdict in found.verdicts} == {(first.label, second.label)}
    assert found.to_pandas()["contender"].tolist() == ["memory", "memory#2"]
    with pytest.raises(AttributeError, match=r"no metric 'p50'; there are .*due_p50_us"):
        first.p50  # noqa: B018


@pytest.mark.parametrize("participants", ["gateways", "engines"])
def test_a_comparison_has_an_arm_for_each_number_of_participants(
    participants: str, no_pages_of_runs: None, tmp_path: Path
):
    found = xs.compare(
        "memory,memory",
        ["5k"],
        repeats=1,
        seconds=0.05,
        instruments=10,
        redo_noisy=False,
        results=tmp_path,
        **{participants: [1, 2]},
    )
    assert [arm["settings"][participants] for arm in found.record["arms"]] == [1, 1, 2, 2]
    assert len({verdict.first for verdict in found.verdicts}) == 2


def test_a_sweep_runs_every_combination(no_pages_of_runs: None, tmp_path: Path):
    found = xs.sweep(
        {"packing": [1, 4], "rate": ["1k", 2000]},
        transport="memory",
        orders=100,
        repeats=1,
        pause=0,
        redo_noisy=False,
        results=tmp_path,
    )
    packing_and_rate = [
        (arm["settings"]["packing"], arm.get("settings")["orders_per_s"]) for arm in found.record["arms"]
    ]
    assert sorted(packing_and_rate) == [(1, 1000.0), (1, 2000.0), (4, 1000.0), (4, 2000.0)]


def test_a_capacity_has_an_estimate_and_its_probes(no_pages_of_runs: None, tmp_path: Path):
    found = xs.capacity(
        "max <= 9s",
        transport="memory",
        start=300_000,
        seconds=0.1,
        longest=0.1,
        precision=1.0,
        probes=4,
        pause=0,
        results=tmp_path,
    )
    assert (found.orders_per_s is None) == (found.record["capacity_orders_per_s"] is None)
    assert len(found.to_pandas()) == len(found.record["probes"]) > 0
    assert found.page is not None
    with pytest.raises(xs.BadOption, match="is not understood"):
        xs.capacity("p99 is low", transport="memory", results=tmp_path / "other")


def test_a_benchmark_has_a_figure_of_each_cell(tmp_path: Path):
    found = xs.bench("de-spsc", transport="memory", sizes=[8, 64], repeats=1, results=tmp_path)
    assert found.verdicts == [], "one transport is compared with nothing"
    assert found.figure("messages_per_s", "memory", size_bytes=8).median > 0
    assert found.to_pandas()["size_bytes"].tolist() == [8, 64]
    with pytest.raises(LookupError, match="2 cells have"):
        found.figure("messages_per_s", "memory")
    with pytest.raises(LookupError, match=r"has no figure bushels; it has .*messages_per_s"):
        found.figure("bushels", "memory", size_bytes=8)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rte": 1}, "did you mean rate"),
        ({"rate": "fast"}, "give orders a second"),
        ({"rate": 0}, "--rate is 0; allowed is 0.001"),
        ({"transport": "zeromk"}, "did you mean zeromq"),
        ({"orders": -1}, "orders is -1"),
        ({"prices": "cheap"}, "LOW..HIGH"),
    ],
)
def test_a_bad_option_is_an_exception_and_leaves_nothing(options: dict[str, Any], message: str, tmp_path: Path):
    with pytest.raises(xs.BadOption, match=message):
        xs.run(results=tmp_path, **options)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "call",
    [
        lambda results: xs.compare(["memory"], [1000], results=results),
        lambda results: xs.sweep({"pakcing": [1]}, results=results),
        lambda results: xs.sweep({"packing": [1]}, record=True, results=results),
        lambda results: xs.bench("de-spcs", results=results),
        lambda results: xs.bench("de-spsc", sizse="8", results=results),
    ],
)
def test_mistakes_in_trials_and_benchmarks_are_exceptions_too(call: Any, tmp_path: Path):
    with pytest.raises(xs.BadOption):
        call(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_only_the_main_thread_can_measure(tmp_path: Path):
    caught: list[Exception] = []

    def try_it() -> None:
        try:
            xs.run(transport="memory", orders=10, results=tmp_path)
        except xs.CannotMeasure as error:
            caught.append(error)

    thread = threading.Thread(target=try_it)
    thread.start()
    thread.join()
    assert "main thread" in str(caught[0])


def test_a_run_that_is_not_whole_is_an_exception_with_its_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    invalid = MeasuredRun({"status": "invalid", "reasons": ["lost 3"]}, {})
    monkeypatch.setattr("exchange_simulation.measuring.measured_run", lambda *_: invalid)
    with pytest.raises(xs.NotWhole, match="invalid; lost 3") as caught:
        xs.run(transport="memory", orders=10, page=False, results=tmp_path)
    assert caught.value.outcome.record["reasons"] == ["lost 3"]


def test_a_bad_option_is_no_error_of_a_command():
    assert not isinstance(xs.BadOption("x"), click.ClickException)
