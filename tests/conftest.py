"""Settings of all tests, fixtures that several folders share, and groups of tests that share a process.

Hypothesis has no deadline: a slow machine is not a wrong answer.

`make test` runs the tests in several processes (pytest-xdist, `--dist loadgroup`). Tests with the same `xdist_group`
go to one process, so that they share what is slow to make: a broker, a browser, a Spark session, a run that was
measured once. pytest-xdist starts with the groups of most tests; a test without a group goes to whichever process is
free. A test's group is, in this order:

- the mark `xdist_group` of the test, of its parameter, or of its module: a module with a slow fixture for all its
  tests names the group with `pytestmark`;
- the group of its folder, given by the folder's conftest.py;
- the group of a fixture that it uses, from GROUP_OF_FIXTURE.
"""

import atexit
import gc
import signal
import subprocess

import pytest
from hypothesis import settings

from tests.broker import at_broker, brokers, keys, need_rabbitmq, no_standing_broker, rabbitmq_node
from tests.browser import browser
from tests.exchange_command import Running, command, exchange, match_record, run_exchange, running
from tests.exchange_simulation.messaging.bench_commands import bench, benches
from tests.machine import EXAMPLES
from tests.own_process import in_own_process

__all__ = ["at_broker", "brokers", "browser", "keys", "match_record", "no_standing_broker", "rabbitmq_node", "running"]

GROUP_OF_FIXTURE = {"brokers": "broker", "browser": "browser", "spark": "spark"}
"""Fixtures that last for a whole process, with the group of the tests that use them."""

MARK_OF_FIXTURE = {"browser": pytest.mark.browser, "spark": pytest.mark.jvm}
"""Fixtures, with the mark by which `make` selects the tests that use them."""

STARTERS = (subprocess, exchange, run_exchange, command, Running, need_rabbitmq, bench, benches, in_own_process)
STARTING_FIXTURES = {"running", "no_standing_broker"}
"""Fixtures that start a process. With them, or with a name of STARTERS, a test is not for `make test-fast`."""

# The shell ignores SIGINT in `make test &`, and nohup ignores SIGHUP. Commands under test would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

USUAL_GC_THRESHOLD = gc.get_threshold()
# During collection nothing is garbage, and looking for garbage among thousands of tests takes a seventh of the time.
gc.set_threshold(100_000)

settings.register_profile("untimed", deadline=None, max_examples=EXAMPLES)
settings.load_profile("untimed")


@pytest.hookimpl(trylast=True)
def pytest_itemcollected(item: pytest.Item) -> None:
    """Give a test the marks of its fixtures, and the group of a fixture if the test has no group.

    A test without a group that starts no process is marked `fast`.
    """
    fixtures = getattr(item, "fixturenames", ())
    for fixture, mark in MARK_OF_FIXTURE.items():
        if fixture in fixtures:
            item.add_marker(mark)
    if item.get_closest_marker("xdist_group"):
        return
    for fixture, group in GROUP_OF_FIXTURE.items():
        if fixture in fixtures:
            item.add_marker(pytest.mark.xdist_group(group))
            return
    if not _starts_processes(item):
        item.add_marker(pytest.mark.fast)


def _starts_processes(item: pytest.Item) -> bool:
    """Return whether one of the test's fixtures starts a process, or its module imports a name of STARTERS."""
    if not STARTING_FIXTURES.isdisjoint(getattr(item, "fixturenames", ())):
        return True
    imported = vars(getattr(item, "module", None) or object).values()
    return any(value is starter for value in imported for starter in STARTERS)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems() -> None:
    """Let the garbage collector ignore the collected tests."""
    gc.freeze()
    gc.set_threshold(*USUAL_GC_THRESHOLD)
    # Some libraries count leaked objects at the end of a process, and would count the frozen ones.
    atexit.register(gc.unfreeze)
