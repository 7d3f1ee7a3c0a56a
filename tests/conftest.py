"""No test is timed: a slow machine is not a wrong answer. Every test that needs a broker shares one private node."""

import gc
import signal
from functools import cache
from pathlib import Path

import pytest
from hypothesis import settings
from xdist.scheduler import LoadScopeScheduling

from tests.broker import brokers, keys, rabbitmq_node
from tests.browser import browser
from tests.exchange_command import matched, running
from tests.machine import EXAMPLES

__all__ = ["brokers", "browser", "keys", "matched", "rabbitmq_node", "running"]

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in `make test &`; the commands under test inherit it
    signal.signal(signal.SIGINT, signal.default_int_handler)

USUAL = gc.get_threshold()
gc.set_threshold(100_000)
"""Thousands of tests are collected, and none is garbage: to look for it among them took a seventh of the time."""

settings.register_profile("untimed", deadline=None, max_examples=EXAMPLES)
settings.load_profile("untimed")

SHARING = {
    "tests/spark/": "spark",
    "tests/experiments/pipeline/test_spark_live.py": "spark live",
    "tests/experiments/simulate/": "simulate",
    "tests/experiments/test_compare.py": "compare",
    "tests/cli/results/": "results",
    "tests/runs/network/": "network",
    "tests/reports/run/test_page_in_browser.py": "browser",
    "tests/reports/run/test_bench_page_in_browser.py": "browser",
    "tests/cli/test_serve": "browser",
    "tests/cli/test_pages_in_browser.py": "browser",
    "tests/transports/amqp/test_tls.py": "tls",
    "tests/transports/amqp/test_alarm.py": "alarm",
    "tests/transports/rabbitmq/test_running_node.py": "shared node",
    "tests/transports/rabbitmq/": "nodes",
    "tests/transports/": "shared node",
    "tests/runs/test_run_over_amqp.py": "shared node",
    "tests/runs/test_recovery.py::test_a_standby_takes_the_place_of_an_engine_that_died_or_froze[amqp": "shared node",
    "tests/messaging/test_bench_over_amqp.py": "shared node",
    "tests/messaging/test_roles_by_hand.py": "shared node",
    "tests/messaging/supply_chain/test_restart.py::test_a_broker_that_is_not_ours": "shared node",
    "tests/experiments/test_trial_over_amqp.py::test_the_standing_node": "shared node",
    "tests/messaging/test_round_trips.py": "shared node",
    "tests/messaging/test_benchmarks.py": "benchmarks",
}
"""Tests that share what is slow to make go to one process, together, and first; all others to whichever is free.

So do those that look whether a namespace is gone: its number is soon another's.
"""


class Sharing(LoadScopeScheduling):
    """A test by itself, or with those that it shares something with, as a fixture that lasts for more than one."""

    def _split_scope(self, nodeid: str) -> str:
        path = _path(nodeid)
        alone = path if 'scope="' in _text(path) else nodeid
        return next((group for place, group in SHARING.items() if nodeid.startswith(place)), alone)


@cache
def _text(path: str) -> str:
    return Path(path).read_text()


def _path(nodeid: str) -> str:
    return nodeid.partition("::")[0]


def _turn(item: pytest.Item) -> int:
    """Groups come first, then tests of whole commands: what is short comes last, so that all processes end together."""
    if any(item.nodeid.startswith(place) for place in SHARING):
        return 0
    return 1 if "exchange_command import" in _text(_path(item.nodeid)) else 2


@pytest.hookimpl(tryfirst=True)
def pytest_itemcollected(item: pytest.Item) -> None:
    if "browser" in getattr(item, "fixturenames", ()):
        item.add_marker(pytest.mark.browser)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=_turn)
    gc.freeze()
    gc.set_threshold(*USUAL)


def pytest_unconfigure() -> None:
    """Libraries that count what leaks at the end of a process find nothing."""
    gc.unfreeze()


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> Sharing:
    return Sharing(config, log)
