"""No test is timed: a slow machine is not a wrong answer. Tests that need a broker share one private node."""

import atexit
import gc
import re
import signal
from functools import cache
from pathlib import Path

import pytest
from hypothesis import settings
from xdist.scheduler import LoadScopeScheduling

from tests.broker import at_broker, brokers, keys, no_standing_broker, rabbitmq_node
from tests.browser import browser
from tests.exchange_command import matched, running
from tests.machine import EXAMPLES

__all__ = ["at_broker", "brokers", "browser", "keys", "matched", "no_standing_broker", "rabbitmq_node", "running"]

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in `make test &`; the commands under test inherit it
    signal.signal(signal.SIGINT, signal.default_int_handler)

USUAL = gc.get_threshold()
gc.set_threshold(100_000)
"""Thousands of tests are collected, and none is garbage: to look for it among them took a seventh of the time."""

settings.register_profile("untimed", deadline=None, max_examples=EXAMPLES)
settings.load_profile("untimed")

ITS_FILE = ""
SHARING = {
    r"tests/transports/amqp/test_(link|knobs|commit_point|alarm|durable|tls)\.py": "shared node",
    r"tests/transports/(rabbitmq/test_running_node|test_requests|test_published)\.py": "shared node",
    r"tests/(transports/test_(contract|lending|nodelay|queue|routed)|.*/messaging/test_round_trips).*(amqp|broker)": (
        "shared node"
    ),
    r"tests/exchange_simulation/launching/test_run_over_amqp\.py::test_(the_same_seed|a_wrong_password)": "shared node",
    r"tests/exchange_simulation/launching/test_recovery\.py::test_a(n_engine_that|_reporter_that|_standby)_.*\[amqp": (
        "shared node"
    ),
    r"tests/exchange_simulation/messaging/test_(bench_over_amqp|bench_durable|roles_by_hand)\.py": "shared node",
    r"tests/exchange_simulation/messaging/supply_chain/test_restart\.py::test_a_broker_that_is_not_ours": "shared node",
    r"tests/exchange_simulation/experiments/test_trial_over_amqp\.py::test_the_standing_node": "shared node",
    r"tests/exchange_simulation/messaging/test_benchmarks\.py": ITS_FILE,
    r"tests/exchange_simulation/launching/network/": "network",
    r"tests/exchange_simulation/test_examples_in_python\.py::test_the_notebook_on_spark": "a session of its own",
    r"tests/spark/(live/|dataset/test_(ingest_kills|ingest_on_full_disk|submitted|sql))": "second spark",
    r"tests/spark/": "spark",
    r"tests/exchange_simulation/cli/results/": "results",
    r"tests/exchange_simulation/reports/run/test_(page|bench_page)_in_browser\.py": "browser",
    r"tests/exchange_simulation/cli/test_(serve|pages_in_browser)": "browser",
    r"tests/exchange_simulation/experiments/simulate/": "simulate",
    r"tests/exchange_simulation/experiments/(test_compare|pipeline/test_spark_live)\.py": ITS_FILE,
    r"tests/(transports/|exchange_simulation/messaging/test_round_trips)": ITS_FILE,
}
"""Tests that share what is slow to make go to one process, together, and first; all others to whichever is free.

The first of these take longest, so they begin first. Tests that look whether a namespace is gone share a process, too:
its number is soon another's. A process has one Spark session at a time, so a test that opens its own comes before
those that share one; these are in two processes, each with a session.
"""


class Sharing(LoadScopeScheduling):
    """A test by itself, or with those that it shares something with, as a fixture that lasts for more than one."""

    def _split_scope(self, nodeid: str) -> str:
        path, (_, group) = _path(nodeid), _shared(nodeid)
        alone = path if 'scope="' in _text(path) else nodeid
        return path if group == ITS_FILE else group or alone


@cache
def _text(path: str) -> str:
    return Path(path).read_text()


def _path(nodeid: str) -> str:
    return nodeid.partition("::")[0]


def _shared(nodeid: str) -> tuple[int, str | None]:
    """The place in SHARING of a test, and its group; behind all others and none, if it is nowhere there."""
    found = ((place, group) for place, (pattern, group) in enumerate(SHARING.items()) if re.match(pattern, nodeid))
    return next(found, (len(SHARING), None))


def _turn(item: pytest.Item) -> tuple[int, bool]:
    """Groups come first, then tests of whole commands: what is short comes last, so that all processes end together."""
    return _shared(item.nodeid)[0], "exchange_command import" not in _text(_path(item.nodeid))


@pytest.hookimpl(tryfirst=True)
def pytest_itemcollected(item: pytest.Item) -> None:
    if "browser" in getattr(item, "fixturenames", ()):
        item.add_marker(pytest.mark.browser)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=_turn)
    gc.freeze()
    gc.set_threshold(*USUAL)
    atexit.register(gc.unfreeze)  # libraries that count what leaks at the end of a process find nothing


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> Sharing:
    return Sharing(config, log)
