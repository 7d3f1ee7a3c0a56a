"""Nothing is compiled, or loaded from numba's cache, while a run's clocks run: numba says so itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.exchange_command import VALID_STATUSES, exchange

WITNESS = """
import os, traceback
from numba.core import event

LOOPS = ("service.py", "loop.py", "subscriber.py", "feeds.py")

class Witness(event.Listener):
    def on_start(self, locked):
        calls = traceback.extract_stack()
        if any(call.name == "run" and call.filename.endswith(LOOPS) for call in calls):
            with open(os.environ["LOCKED"], "a") as file:
                print(*(f"{call.filename}:{call.lineno}" for call in calls), file=file)

    def on_end(self, released):
        pass

event.register("numba:compiler_lock", Witness())
"""
"""A sitecustomize.py, which each process of a run imports: it notes what takes numba's lock within a component's loop.

A kernel's first call takes it, whether numba compiles the kernel then or finds it in its cache.
"""

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
MIX = ("--mix", "limit=60,cancel=30,replace=10", "--packing", 3)
POISSON = ("--arrivals", "poisson", "--record", "--policy", "exact-price", "--topology", "simplex")


MARKET = ("--gateways", 2, "--subscribers", 1, "--depth", "--mix", "exchange-core")


@pytest.mark.parametrize("words", [(), MARKET], ids=["a gateway", "a market"])
def test_no_kernel_is_loaded_while_the_clocks_run(words: tuple[object, ...], tmp_path: Path) -> None:
    assert_nothing_locks(tmp_path, "zeromq", *words)


@pytest.mark.long
@pytest.mark.parametrize(
    ("transport", "words"),
    [
        ("zeromq", ()),
        ("memory", ()),
        ("zeromq", BURSTS),
        ("tcp", POISSON),
        ("memory", BURSTS),
        ("zeromq", ("--rate", "max")),
        ("zeromq?calls=plain", POISSON[:-2]),
        ("amqp", ()),
        ("tcp", ("--recover",)),
        ("tcp", MIX),
        ("nats", ()),
        ("redis", ()),
        ("redis?kind=stream", ()),
        ("nng", ()),
        ("shm", ()),
        ("shm", ("--rate", "max")),
        ("amqp", MARKET),
        ("tcp", ("--gateways", 2)),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(map(str, value)) or "defaults",
)
def test_nothing_is_compiled_while_the_clocks_run(transport: str, words: tuple[object, ...], tmp_path: Path) -> None:
    """The cache is empty. Without optimization, kernels compile in half the time, and at the same moments."""
    assert_nothing_locks(tmp_path, transport, *words, NUMBA_CACHE_DIR=str(tmp_path / "kernels"), NUMBA_OPT="0")


def assert_nothing_locks(tmp_path: Path, transport: str, *words: object, **env: str) -> None:
    (tmp_path / "sitecustomize.py").write_text(WITNESS)
    locked = tmp_path / "locked"
    load = ("--transport", transport, "--rate", 4_000, "--orders", 2_000, *words)
    env |= {"PYTHONPATH": str(tmp_path), "LOCKED": str(locked)}
    finished = exchange("run", "--json", "--no-spark", "--no-page", "--results", tmp_path, *load, **env)
    assert finished.code == 0, finished.err
    assert finished.record["status"] in VALID_STATUSES
    assert not locked.exists(), locked.read_text()
