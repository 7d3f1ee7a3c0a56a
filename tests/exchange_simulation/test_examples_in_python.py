"""The scripts of examples/ and the cells of the notebook run as they stand.

What they measure is made small and measured once, in threads of one process.

The sizes that stand in the scripts are run by `make test-long`.
"""

from __future__ import annotations

import inspect
import os
import runpy
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import exchange_simulation
from tests.exchange_simulation.notebooks import cells_of, values_of
from tests.own_process import in_own_process

pytestmark = pytest.mark.xdist_group("examples in Python")

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
SAYS = {"one_run": "from due time ", "broker_or_none": " at 4,000 orders/s", "matching": "400 prices: "}
ON_SPARK = {"sampled_times": "p50 of all orders: "}
SMALL: dict[str, dict[str, Any]] = {
    "run": {"transport": "memory", "orders": "4k"},
    "compare": {
        "transports": ["memory", "zeromq+inproc"],
        "repeats": 1,
        "seconds": 0.2,
        "redo_noisy": False,
    },
}


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """`run` and `compare` measure something small; whoever asks for the same gets the same outcome."""
    outcomes: dict[str, object] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("examples"))
        for name, sizes in SMALL.items():
            patch.setattr(exchange_simulation, name, smaller(getattr(exchange_simulation, name), sizes, outcomes))
        yield


def smaller(measure: Callable[..., object], sizes: dict[str, Any], outcomes: dict[str, object]) -> Callable[..., Any]:
    def measured(*args: Any, on_progress: Callable[[str], None] = str, results: str = "results", **options: Any) -> Any:
        asked = dict(zip(inspect.signature(measure).parameters, args, strict=False)) | options | sizes
        key = repr((measure.__name__, sorted(asked.items())))
        if key not in outcomes:
            outcomes[key] = measure(on_progress=on_progress, results=results, **asked)
        return outcomes[key]

    return measured


def test_every_script_is_run_here():
    assert {path.stem for path in EXAMPLES.glob("*.py")} == SAYS.keys() | ON_SPARK.keys()


@pytest.mark.parametrize("name", SAYS)
def test_a_script_runs(name: str, small: None, capsys: pytest.CaptureFixture[str]):
    runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    assert SAYS[name] in capsys.readouterr().out


@pytest.mark.long
@pytest.mark.parametrize("name", SAYS)
def test_a_script_runs_at_its_size_as_a_program(name: str, tmp_path: Path):
    assert SAYS[name] in output_of(name, tmp_path)


@pytest.mark.jvm
@pytest.mark.parametrize("name", ON_SPARK)
def test_a_script_on_spark_runs_as_a_program(name: str, tmp_path: Path):
    assert ON_SPARK[name] in output_of(name, tmp_path)


def output_of(name: str, folder: Path) -> str:
    """Run a script of examples/ in this folder; return what it prints."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    words = [sys.executable, str(EXAMPLES / f"{name}.py")]
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_notebook_runs(small: None):
    values = values_of(EXAMPLES / "first_look.ipynb", {})
    shown = [value._repr_html_() for value in values if hasattr(value, "_repr_html_")]
    assert len(shown) == 3
    assert sum("<iframe" in html for html in shown) == 2
    assert values[-1][0] > 100_000


@pytest.mark.parametrize("name", ["first_look", "market_on_spark"])
def test_a_notebook_is_stored_without_its_outputs(name: str):
    assert all(cell["outputs"] == [] for cell in cells_of(EXAMPLES / f"{name}.ipynb"))


@pytest.mark.jvm
@pytest.mark.long
def test_the_notebook_on_spark_runs(tmp_path: Path):
    in_own_process(run_the_notebook_on_spark, tmp_path)


def run_the_notebook_on_spark(folder: Path) -> None:
    """Run its cells in a folder, with small measurements, and look at the value of each."""
    os.chdir(folder)
    sizes = {"run": {"duration": 0.5}, "sweep": {"repeats": 1, "duration": 0.2, "pause": 0.0, "redo_noisy": False}}
    for name, small in sizes.items():
        setattr(exchange_simulation, name, smaller(getattr(exchange_simulation, name), small, {}))
    values = [value for value in values_of(EXAMPLES / "market_on_spark.ipynb", {}) if value is not None]
    status, views, bars, prices, traded, arms, percentiles, fitted = values
    assert status == "complete"
    assert {"orders", "trades", "quotes", "arms", "summary"} <= set(views.tableName)
    assert list(bars.start_s) == [0.0, 0.1, 0.2, 0.3, 0.4]
    assert (bars.low <= bars[["open", "close"]].min(axis=1)).all()
    assert list(traded.orders) == [4000, 4000, 4000]
    assert sorted(zip(arms.packing, arms.offered_orders_per_s, strict=True)) == [
        (packing, rate) for packing in (1, 10) for rate in (2000, 4000, 8000)
    ]
    assert all(hasattr(figure, "savefig") for figure in (prices, percentiles))
    assert fitted.startswith("p99 ~ rate^")
