"""Settings of all tests, the fixtures that several folders share, and which tests share a process.

No test is timed: a slow machine is not a wrong answer.

`make test` runs the tests in several processes (pytest-xdist, `--dist loadgroup`). Tests with the same `xdist_group`
go to one process, so that they share what is slow to make: a broker, a browser, a Spark session, a run that was
measured once. pytest-xdist starts with the groups of most tests; a test without a group goes to whichever process is
free. A test's group is, in this order:

- the mark `xdist_group` of the test, of its parameter, or of its module: a module that has a fixture of its own for
  all its tests, and a slow one, names the group with `pytestmark`;
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
from tests.machine import EXAMPLES

__all__ = ["at_broker", "brokers", "browser", "keys", "match_record", "no_standing_broker", "rabbitmq_node", "running"]

GROUP_OF_FIXTURE = {"brokers": "broker", "browser": "browser", "spark": "spark"}
"""Fixtures that last for a whole process, with the group of the tests that use them."""

MARK_OF_FIXTURE = {"browser": pytest.mark.browser, "spark": pytest.mark.jvm}
"""Fixtures, with the mark by which `make` selects the tests that use them."""

STARTERS = (subprocess, exchange, run_exchange, command, Running, need_rabbitmq)
STARTING_FIXTURES = {"running", "no_standing_broker"}
"""Names and fixtures by which a test starts a process, so that it is not for `make test-fast`."""

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # As in `make test &`. The commands under test would inherit it, and no test of Ctrl-C could pass.
    signal.signal(signal.SIGINT, signal.default_int_handler)

USUAL_GC_THRESHOLD = gc.get_threshold()
# Thousands of tests are collected, and none is garbage: to look for garbage among them took a seventh of the time.
gc.set_threshold(100_000)

settings.register_profile("untimed", deadline=None, max_examples=EXAMPLES)
settings.load_profile("untimed")


@pytest.hookimpl(trylast=True)
def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark a test with what its fixtures start, with the group of a fixture unless it has a group already, and `fast`.

    A test is `fast` if it has no group, which would share something slow, and starts no process.
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
    """Return whether a test's module imports what starts a process, or one of its fixtures does."""
    if not STARTING_FIXTURES.isdisjoint(getattr(item, "fixturenames", ())):
        return True
    imported = vars(getattr(item, "module", None) or object).values()
    return any(value is starter for value in imported for starter in STARTERS)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems() -> None:
    """Keep the garbage collector away from the tests that were collected."""
    gc.freeze()
    gc.set_threshold(*USUAL_GC_THRESHOLD)
    # Libraries that count what leaks at the end of a process would find what was frozen.
    atexit.register(gc.unfreeze)
