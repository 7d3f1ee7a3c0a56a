"""Earlier outcomes from Python: opened, listed, drawn, printed; and what help() says of the functions."""

from __future__ import annotations

import inspect
import re
import sys
from pathlib import Path

import pytest

import exchange_simulation
from exchange_simulation import BadOption, Comparison, NoOutcome, Run, list_results
from exchange_simulation.outcomes import (
    Benchmark,
    Capacity,
    FaultMatrix,
    MeasuredOutcome,
    PaperOutcome,
    SimulatedMarket,
)
from tests.exchange_simulation.cli.results.kept_folders import put_run, put_trial

ARM_WITHOUT_RATE = {"settings": {"orders_per_s": None}, "metrics": {}}


def test_a_folder_is_opened_as_the_outcome_that_it_holds(tmp_path: Path) -> None:
    opened = exchange_simulation.open(put_run(tmp_path, "first", us=250.0))
    assert isinstance(opened, Run)
    assert opened.p50_us == 260.0
    assert isinstance(exchange_simulation.open(put_trial(tmp_path, "second")), Comparison)


def test_a_folder_without_a_record_is_named(tmp_path: Path) -> None:
    with pytest.raises(NoOutcome, match="holds none of comparison"):
        exchange_simulation.open(tmp_path)
    damaged = put_run(tmp_path, "damaged")
    (damaged / "run.json").write_bytes(b"{")
    with pytest.raises(NoOutcome, match="damaged"):
        exchange_simulation.open(damaged)


def test_results_are_listed_oldest_first_without_unusable_folders(tmp_path: Path) -> None:
    put_run(tmp_path, "later", started_at="2026-11-22T10:00:00+00:00")
    put_run(tmp_path, "earlier", started_at="2026-11-20T10:00:00+00:00")
    put_trial(tmp_path, "between")
    (tmp_path / "other").mkdir()
    assert [outcome.folder.name for outcome in list_results(tmp_path)] == ["earlier", "between", "later"]
    with pytest.raises(NoOutcome, match="cannot read"):
        list_results(tmp_path / "nowhere")


def test_an_outcome_s_repr_is_one_short_line(tmp_path: Path) -> None:
    folder = put_run(tmp_path, "first")
    shown = repr(exchange_simulation.open(folder))
    assert shown.startswith(f"<Run {folder}: complete: zeromq, 8,000 orders/s: p50 110 us")
    assert len(shown) < 300


def test_an_outcome_is_drawn_by_the_name_of_a_picture(tmp_path: Path) -> None:
    trial = put_trial(tmp_path, "first", repeats=6, rates=(1000.0, 2000.0))
    outcome = exchange_simulation.open(trial)
    name = outcome.plots[0]
    assert outcome.plot(name).axes[0].get_title("left")
    with pytest.raises(LookupError, match="there is no picture 'nosuch'"):
        outcome.plot("nosuch")


def test_a_comparison_without_a_picture_says_why(tmp_path: Path) -> None:
    """Regression: it said "too little was measured" of a whole comparison with fewer than four arms."""
    outcome = exchange_simulation.open(put_trial(tmp_path, "first", repeats=6, rates=(1000.0,)))
    assert outcome.plots == []
    with pytest.raises(LookupError, match="a picture needs 4 arms or more, each with a rate, and here are 2; rows"):
        outcome.plot()


@pytest.mark.parametrize(
    ("outcome", "why"),
    [
        (Benchmark(Path("b"), {"benchmark": "de-spsc", "rows": []}), "b has no picture: a curve needs a figure at two"),
        (Comparison(Path("t"), {"study": "compare", "arms": [ARM_WITHOUT_RATE]}), "each with a rate, and here are 0"),
        (FaultMatrix(Path("f"), {}), "f has no picture: a fault matrix is a table; rows"),
        (SimulatedMarket(Path("s"), {}), "s has no picture: a simulation is not drawn; rows"),
        (PaperOutcome(Path("p"), {}), "p has no picture: a paper's pictures are those of its parts"),
        (Capacity(Path("c"), {"probes": []}), "c has no picture: no run was made to find the capacity"),
    ],
)
def test_an_outcome_without_a_picture_says_why(outcome: MeasuredOutcome, why: str) -> None:
    with pytest.raises(LookupError, match=why):
        outcome.plot()


@pytest.mark.parametrize(("library", "method"), [("pandas", "to_pandas"), ("pyarrow", "to_arrow")])
def test_a_table_without_its_library_names_the_extra(
    library: str, method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Regression: the error was a bare "No module named 'pandas'"."""
    outcome = exchange_simulation.open(put_trial(tmp_path, "first"))
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ModuleNotFoundError, match=rf"needs {library}: pip install 'exchange-simulation\[spark\]'"):
        getattr(outcome, method)()


def test_the_public_names_are_listed_for_help_and_editors() -> None:
    assert set(exchange_simulation.__all__) <= set(dir(exchange_simulation))


@pytest.mark.parametrize("name", [name for name in exchange_simulation.__all__ if name.islower()])
def test_the_help_of_each_function_has_an_example(name: str) -> None:
    example = re.compile(rf"For example: `(with )?{name}\(")
    assert example.search(inspect.getdoc(getattr(exchange_simulation, name)) or "")


def test_help_shows_every_option_of_a_run_with_its_default() -> None:
    parameters = inspect.signature(exchange_simulation.run).parameters
    assert parameters["rate"].default == 8000.0
    assert parameters["packing"].default == 1
    assert "options" not in parameters
    of_compare = inspect.signature(exchange_simulation.compare).parameters
    assert "rate" not in of_compare
    assert "packing" in of_compare
    of_simulate = inspect.signature(exchange_simulation.simulate).parameters
    assert {"seed", "prices", "price_model", "max_price", "policy"} <= of_simulate.keys()
    assert not {"options", "transport", "rate"} & of_simulate.keys()


@pytest.mark.parametrize("given", [{"rates": 2000}, {"transports": 7}])
def test_one_value_where_a_list_is_needed_is_a_bad_option(given: dict[str, object], tmp_path: Path) -> None:
    (value,) = given.values()
    with pytest.raises(BadOption, match=rf"{value} is one value, where a list is needed: give \[{value}\]"):
        exchange_simulation.compare(**given, results=tmp_path)  # type: ignore[arg-type]


def test_a_market_is_simulated_from_python(tmp_path: Path) -> None:
    market = exchange_simulation.simulate(instruments=4, orders="4k", results=tmp_path, name="market")
    assert market.record["totals"]["orders"] == 4_000
    assert market.rows()[0]["total"] == 4_000
    assert repr(exchange_simulation.open(market.folder)) == repr(market)
    with pytest.raises(BadOption, match="'window' is no option"):
        exchange_simulation.simulate(4, 100, results=tmp_path, window=3)


def test_a_fault_and_a_level_of_nagle_that_do_not_exist_are_bad_options(tmp_path: Path) -> None:
    with pytest.raises(BadOption, match="'nosuch' is no fault"):
        exchange_simulation.faults(["tcp"], ["nosuch"], results=tmp_path)
    with pytest.raises(BadOption, match="'nosuch' is none"):
        exchange_simulation.nagle(["tcp"], [1000], ["nosuch"], results=tmp_path)
    with pytest.raises(BadOption, match="'nosuch' is no option"):
        exchange_simulation.suite(nosuch=1, results=tmp_path)


def test_help_of_bench_and_suite_lists_their_options():
    of_bench = inspect.signature(exchange_simulation.bench).parameters
    assert {"transport", "sizes", "rate", "count", "repeats", "quick", "patterns", "base", "hosts"} <= set(of_bench)
    assert of_bench["timeout"].default == 10.0
    assert of_bench["repeats"].default is None  # each benchmark has a number of its own
    of_suite = inspect.signature(exchange_simulation.suite).parameters
    assert {"transport", "repeats", "quick", "network"} <= set(of_suite)
    for parameters in (of_bench, of_suite):
        assert all(parameter.kind is not parameter.VAR_KEYWORD for parameter in parameters.values())
        assert not {"json", "plan"} & set(parameters)


def test_a_paper_that_is_not_known_is_a_bad_option(tmp_path: Path) -> None:
    with pytest.raises(BadOption, match=r"paper is 'amqq': did you mean amqp\?"):
        exchange_simulation.paper("amqq", results=tmp_path)
    assert list(tmp_path.iterdir()) == []
