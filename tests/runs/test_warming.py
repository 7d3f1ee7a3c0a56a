"""Nothing is compiled while a run's clocks run: numba says so itself, of runs that begin with an empty cache."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.exchange_command import VALID, exchange

WITNESS = """
import os, traceback
from numba.core import event

class Witness(event.Listener):
    def on_start(self, compiling):
        calls = traceback.extract_stack()
        if any(call.name == "run" and call.filename.endswith("service.py") for call in calls):
            with open(os.environ["COMPILED"], "a") as file:
                print(compiling.data["dispatcher"], file=file)

    def on_end(self, compiled):
        pass

event.register("numba:compile", Witness())
"""
"""A sitecustomize.py, which each process of a run imports: it notes what is compiled within a component's loop."""

BURSTS = (
    "--arrivals",
    "bursts:50",
    "--price-model",
    "normal",
    "--packing",
    7,
    "--window",
    100,
    "--sampling-interval",
    9,
)
POISSON = ("--arrivals", "poisson", "--record", "--policy", "exact-price", "--topology", "simplex")


@pytest.mark.parametrize(
    ("transport", "words"),
    [
        ("zeromq", ()),
        pytest.param("memory", (), marks=pytest.mark.long),
        pytest.param("zeromq", BURSTS, marks=pytest.mark.long),
        pytest.param("tcp", POISSON, marks=pytest.mark.long),
        pytest.param("memory", BURSTS, marks=pytest.mark.long),
        pytest.param("zeromq", ("--rate", "max"), marks=pytest.mark.long),
        pytest.param("zeromq?calls=plain", POISSON[:-2], marks=pytest.mark.long),
        pytest.param("amqp", (), marks=pytest.mark.long),
        pytest.param("tcp", ("--recover",), marks=pytest.mark.long),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(map(str, value)) or "defaults",
)
def test_nothing_is_compiled_while_the_clocks_run(transport: str, words: tuple[object, ...], tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(WITNESS)
    compiled = tmp_path / "compiled"
    surroundings = {
        "PYTHONPATH": str(tmp_path), "NUMBA_CACHE_DIR": str(tmp_path / "kernels"), "COMPILED": str(compiled),
        "NUMBA_OPT": "0",  # compiled in half the time, and at the same moments
    }  # fmt: skip
    load = ("--rate", 4_000, "--orders", 2_000, *words)
    said = exchange(
        "run",
        "--json",
        "--no-spark",
        "--no-page",
        "--results",
        tmp_path,
        "--transport",
        transport,
        *load,
        **surroundings,
    )
    assert said.code == 0, said.err
    assert said.record["status"] in VALID
    assert not compiled.exists(), compiled.read_text()
