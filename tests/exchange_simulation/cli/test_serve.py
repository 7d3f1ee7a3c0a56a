"""`exchange serve`: which requests it refuses, and how the runs that it starts end."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from urllib.request import urlopen

import orjson
import psutil
import pytest
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from exchange_simulation.cli.serve.server import Server
from tests.exchange_command import exchange_in_process, run_exchange_in_process
from tests.exchange_simulation.cli.serving import Serving, serving
from tests.machine import PATIENCE_S, until

pytestmark = pytest.mark.xdist_group("serve")


def test_only_requests_with_the_token_are_answered_and_only_on_loopback(recorded: Serving) -> None:
    assert recorded.url.hostname == "127.0.0.1"
    assert recorded.request(recorded.url.path).status == 200
    for path in ("/", "/table", f"/{'x' * 32}/", recorded.url.path[:-2] + "/"):
        assert recorded.request(path).status == 403
    connections = psutil.Process(recorded.process.pid).net_connections("tcp")
    assert {connection.laddr.ip for connection in connections} == {"127.0.0.1"}


def test_a_connection_above_the_greatest_number_is_closed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("exchange_simulation.cli.serve.server.MOST_CONNECTIONS", 2)

    page = Route("/", lambda _: PlainTextResponse("here"))
    with Server([page], 0) as server, ThreadPoolExecutor(1) as pool:
        serving = pool.submit(server.run)
        address = ("127.0.0.1", server.port)
        first = socket.create_connection(address)
        second = socket.create_connection(address)
        third = socket.create_connection(address)
        with first, third:
            assert third.recv(1) == b"", "the server closes the third connection"
            second.close()
            until(partial(answers, server), "an answer on a connection in place of the second")
        server.stop()
        serving.result()


def answers(server: Server) -> bool:
    """Whether the server takes one more connection and answers on it."""
    with contextlib.suppress(OSError), urlopen(server.address, timeout=PATIENCE_S) as answer:
        return answer.read() == b"here"
    return False


def test_a_request_by_another_host_s_name_is_refused(recorded: Serving) -> None:
    for host in ("attacker.example", f"localhost:{recorded.url.port}", "127.0.0.1.attacker.example"):
        assert recorded.request(recorded.url.path, Host=host).status == 400


def test_a_form_is_taken_only_from_a_page_of_ours_and_only_if_short(recorded: Serving) -> None:
    stop = f"{recorded.url.path}stop"
    origin = f"http://{recorded.url.netloc}"
    assert recorded.request(stop, "POST").status == 403
    assert recorded.request(stop, "POST", Origin="http://attacker.example").status == 403
    assert recorded.request(stop, "POST", Origin=origin).status == 303
    assert recorded.request(stop, "POST", "x" * 100_000, Origin=origin).status == 413


@pytest.mark.parametrize(
    "path",
    [
        "page/../../../etc/passwd",
        "page/..%2F..%2F..%2Fetc/passwd",
        "page/%2Fetc/passwd",
        "page/compare/plan.json",
        "page/compare/../run-zeromq/report.html",
        "live/..%0d%0aX:y",
        "events/none",
        "page",
        "page/run-zeromq",
        "page/run-zeromq/spool/000001.jsonl",
    ],
)
def test_no_path_leads_out_of_the_results_or_to_other_files(recorded: Serving, path: str) -> None:
    assert recorded.request(recorded.url.path + path).status == 404


@pytest.mark.parametrize(
    "signal_to_server", [pytest.param(signal.SIGINT, marks=pytest.mark.long), signal.SIGTERM, signal.SIGKILL]
)
def test_a_second_run_is_refused_while_one_is_under_way(fresh: Serving, signal_to_server: signal.Signals) -> None:
    """The run under way ends with the server."""
    start = f"{fresh.url.path}start"
    origin = f"http://{fresh.url.netloc}"
    assert fresh.request(start, "POST", "duration_s=600&orders_per_s=500", Origin=origin).status == 303
    refused = fresh.request(start, "POST", "orders_per_s=500", Origin=origin)
    assert refused.status == 400
    assert "is under way" in refused.read().decode()
    assert fresh.request(start, "POST", "results=elsewhere", Origin=origin).status == 400
    mistake = fresh.request(f"{fresh.url.path}rate", "POST", "rate=many", Origin=origin).read().decode()
    for link in ('href="./"', 'action="./stop"', 'action="./rate"', 'data-events="./events/'):
        assert link in mistake, "the page lies in the first folder"
    until(lambda: list(fresh.results.glob("*/spool/*.jsonl")), "a spool file")
    family = fresh.family()
    assert len(family) >= 6  # its watchdog, the run, the run's watchdog and three components
    fresh.process.send_signal(signal_to_server)
    fresh.process.wait(PATIENCE_S)
    gone, _ = psutil.wait_procs(family, PATIENCE_S)
    assert len(gone) == len(family)
    if signal_to_server != signal.SIGKILL:
        (record_path,) = fresh.results.glob("*/run.json")
        record = orjson.loads(record_path.read_bytes())
        assert record["status"] == "partial"


def test_an_absent_folder_and_a_taken_port_are_refused_with_a_sentence(recorded: Serving, tmp_path: Path) -> None:
    absent = exchange_in_process("serve", "--results", tmp_path / "absent")
    assert absent.code == 2
    assert "is no folder" in absent.err
    taken = exchange_in_process("serve", "--results", tmp_path, "--port", recorded.url.port)
    assert taken.code == 2
    assert "choose another --port" in taken.err


def test_a_report_that_the_server_started_ends_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The report is slow, and the browser waits for the page."""
    (tmp_path / "python").mkdir()
    slow = "import sys, time\nif 'report' in sys.orig_argv: time.sleep(600)\n"
    (tmp_path / "python" / "sitecustomize.py").write_text(slow)
    results = tmp_path / "results"
    run = run_exchange_in_process(results, "--name", "first", "--orders", 100, "--rate", "max")
    assert run.code == 0
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "python"))
    with serving(results) as served:
        asking = threading.Thread(target=ask_in_vain, args=[served, "page/first/report.html"], daemon=True)
        asking.start()
        report = until(partial(report_of, served), "the report")
        served.process.send_signal(signal.SIGTERM)
        served.process.wait(PATIENCE_S)
        _ended, alive = psutil.wait_procs([report], PATIENCE_S)
        assert alive == []


def report_of(served: Serving) -> psutil.Process | None:
    """Return the process that makes a report for the server; None if there is none yet."""
    for child in served.family():
        if "report" in child.cmdline():
            return child
    return None


def ask_in_vain(served: Serving, path: str) -> None:
    with contextlib.suppress(OSError, http.client.HTTPException):
        served.request(served.url.path + path)


def test_a_folder_whose_name_is_no_utf_8_is_a_row_without_a_link(fresh: Serving) -> None:
    for name in (os.fsdecode(b"n\xffame"), "other"):
        folder = fresh.results / name
        folder.mkdir()
        record = {"schema": 1, "name": "x", "status": "complete", "reasons": []}
        (folder / "run.json").write_text(json.dumps(record))
    answer = fresh.request(fresh.url.path)
    page = answer.read().decode()
    assert answer.status == 200
    assert '<th scope="row">n\\udcffame</th>' in page
    assert 'href="page/other/"' in page
