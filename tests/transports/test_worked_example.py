"""The example of docs/example-transport.md, as an installed distribution, keeps the contract and carries a run."""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from exchange_simulation.messaging import running, suite
from exchange_simulation.messaging.benchmarks import benchmark_of
from tests.exchange_command import REFERENCE_RUN, VALID_STATUSES, exchange
from tests.transports.distributions import add_distribution, installed
from tests.transports.test_contract import *  # noqa: F403 - every claim, over the `url` of this module
from tests.transports.test_contract_of_peers import *  # noqa: F403
from transports.registry import GROUP

DOCS = Path(__file__).parents[2] / "docs"
EXAMPLE_PAGE = (DOCS / "example-transport.md").read_text()
DISTRIBUTION_PAGE = (DOCS / "adding-a-transport.md").read_text()
RELAY_MODULE = r"""
import contextlib
import os
import subprocess
import sys
from dataclasses import replace

import exchange_unix
from transports.declaration import Broker, RunningBroker, Transport
from transports.servers.usage import ProcessUsage


class Server:
    def __init__(self, pid):
        self.pid = pid

    def usage(self):
        return ProcessUsage.of(self.pid)

    def cpu_ns(self):
        return self.usage().cpu_ns

    def facts(self):
        return {"product": "a relay", "pid": self.pid}

    def accepted(self):
        return []


class Probe:
    facts = {"version": "1"}

    def __init__(self, addresses):
        self.names = [f"{address.pattern.value}{address.options.get('pair', '')}" for address in addresses]

    def depth(self):
        return dict.fromkeys(self.names, 0)

    def take_down(self):
        pass

    def close(self):
        pass


class Relay(Broker):
    starts = frozenset({"relay"})

    @contextlib.contextmanager
    def start(self, folder, process_group, nodelay, where):
        folder.mkdir()
        work = "import time\nwhile True: sum(range(20_000)); time.sleep(0.01)"
        with subprocess.Popen([sys.executable, "-c", work], process_group=process_group) as process:
            yield RunningBroker(f"relay://{folder}", {"RELAY_PASSWORD": "open"}, Server(process.pid))
            process.kill()

    def probe(self, url, link_addresses):
        return Probe(link_addresses)


def at_broker(address):
    assert os.environ["RELAY_PASSWORD"] == "open"
    assert address.options["delivery"] == "acked"
    if "RELAY_SAYS" in os.environ:
        print(os.environ["RELAY_SAYS"], flush=True)
    socket_name = f"{address.token[-4:]}-{address.pattern.value}{address.options.get('pair', '')}"
    return replace(address, place=f"{address.place}/{socket_name}")


TRANSPORT = Transport(
    places={"relay": "broker"},
    listen=lambda address: exchange_unix.listen(at_broker(address)),
    connect=lambda address, until_ns: exchange_unix.connect(at_broker(address), until_ns),
    options={"delivery": ("fast", "acked"), "pair": ()},
    run_settings={"delivery": "delivery"},
    broker=Relay,
)
"""
"""A transport that claims to have a broker: a process that only uses the processor.

Its frames go over the example's links."""


@pytest.fixture(scope="module")
def distribution(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for sys.path with the page's example, installed as the page describes."""
    folder = tmp_path_factory.mktemp("distribution")
    [example] = re.findall(r"^```python\n(.*?)^```", EXAMPLE_PAGE, re.MULTILINE | re.DOTALL)
    [project] = re.findall(r"^```toml\n(.*?)^```", DISTRIBUTION_PAGE, re.MULTILINE | re.DOTALL)
    entry_points = tomllib.loads(project)["project"]["entry-points"][GROUP]
    [(scheme, module)] = entry_points.items()
    add_distribution(folder, scheme, module, example)
    add_distribution(folder, "relay", "exchange_relay", RELAY_MODULE)
    return folder


@pytest.fixture
def url(distribution: Path, tmp_path: Path) -> Iterator[str]:
    """An address with a new place for each test of the contract."""
    with installed(distribution):
        yield f"unix://{tmp_path / 'link'}"


def test_a_run_goes_over_a_transport_of_another_distribution(
    distribution: Path, tmp_path: Path, match_record: dict[str, object]
) -> None:
    """The relay's frames go over the example's links."""
    path = str(distribution)
    if os.environ.get("PYTHONPATH"):
        path += os.pathsep + os.environ["PYTHONPATH"]
    options = ("--transport", "relay", "--delivery", "acked", "--pairs", 2, *REFERENCE_RUN)
    finished = exchange(
        "run",
        "--json",
        "--no-spark",
        "--no-page",
        "--results",
        tmp_path,
        *options,
        PYTHONPATH=path,
        RELAY_SAYS="a library has connected",
    )
    assert finished.code == 0, finished.err
    record = finished.record
    assert record["status"] in VALID_STATUSES
    assert record["pairs"][0]["checksums"] == match_record["checksums"]
    assert record["components"]["broker"]["cpu_s"] > 0
    assert record["settings"]["delivery"] == "acked"
    assert "a library has connected" in next(tmp_path.glob("*/gateway.log")).read_text()
    broker = record["broker"]
    assert broker["product"] == "a relay"
    assert broker["version"] == "1"
    assert broker["is_private"]
    assert broker["deepest_queue"] == {"pair": 0, "pair2": 0, "fan-in": 0}
    assert not psutil.pid_exists(broker["pid"])


def test_a_suite_of_benchmarks_goes_over_transports_of_other_distributions(
    distribution: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One transport has a broker and one has none. The benchmark is the quickest, with one of its sizes."""
    monkeypatch.setattr(suite, "names", lambda: ["de-pp"])
    monkeypatch.setitem(benchmark_of("de-pp").quick_values, "sizes", (64,))  # type: ignore[arg-type]
    settings = {
        "quick": True,
        "repeats": 1,
        "delivery": "acked",
        "transport": ("unix", "relay"),
        "timeout_s": 60,
        "redo_noisy": False,
    }
    with installed(distribution):
        code = running.run_suite(settings, running.BenchmarkOutput(str(tmp_path), "suite", as_json=True))
    record = json.loads(capsys.readouterr().out)
    [part] = record["parts"]
    assert code == 0
    assert record["status"] == "complete"
    assert part["left_out"] == []
    measured_rows = [row for row in part["rows"] if row["figures"]["round_trip_p50_us"]]
    assert {row["transport"] for row in measured_rows} == {"unix", "relay"}
