"""A running node: its port, its processes, its secrets and its usage."""

from __future__ import annotations

import contextlib
import dataclasses
import os
from pathlib import Path

import psutil
import pytest

from exchange.results import ResourceUsage
from tests.broker import accepted_with_nodelay, family, files_others_may_touch
from tests.machine import PATIENCE_S, until
from transports.rabbitmq import Node
from transports.rabbitmq.node import greeting_of
from transports.servers.usage import ProcessUsage


def test_a_node_s_greeting_agrees_with_its_facts(rabbitmq_node: Node) -> None:
    greeting = greeting_of(rabbitmq_node.host, rabbitmq_node.port, patience_s=PATIENCE_S)
    assert greeting is not None
    facts = rabbitmq_node.facts()
    assert greeting.product == "RabbitMQ"
    assert greeting.version == facts["version"]
    assert facts["version"].count(".") >= 2
    assert greeting.platform == f"Erlang/OTP {facts['erlang']}"
    assert facts["pid"] == rabbitmq_node.pid
    assert facts["port"] == rabbitmq_node.port
    assert facts["settings"]["nodelay"] is True


def test_a_node_listens_only_on_one_loopback_address(rabbitmq_node: Node) -> None:
    listening = []
    for process in family(rabbitmq_node.pid):
        for connection in process.net_connections("inet"):
            if connection.status in {psutil.CONN_LISTEN, psutil.CONN_NONE}:
                listening.append(tuple(connection.laddr))
    assert listening == [("127.0.0.1", rabbitmq_node.port)]


def test_a_node_starts_no_epmd_and_no_other_lasting_helper(rabbitmq_node: Node) -> None:
    assert {process.name() for process in family(rabbitmq_node.pid)} <= {"beam.smp", "erl_child_setup", "sh", "df"}
    assert "-start_epmd false" in " ".join(psutil.Process(rabbitmq_node.pid).cmdline())


def answer_of(node: Node, expression: str) -> str:
    """Let the node evaluate an Erlang expression; return the value as text."""
    answer = node.folder / "answer"
    node.evaluate(f'file:write_file("answer.new", io_lib:format("~0p", [{expression}]))')
    node.evaluate('file:rename("answer.new", "answer")')
    until(answer.exists, f"the node's answer to {expression}")
    text = answer.read_text()
    answer.unlink()
    return text


def test_no_module_of_rabbitmq_is_replaced(rabbitmq_node: Node) -> None:
    """RabbitMQ makes `rabbit_ff_registry` itself, from the feature flags that are on."""
    modified = answer_of(rabbitmq_node, "code:modified_modules() -- [rabbit_ff_registry]")
    assert modified == "[]"
    assert answer_of(rabbitmq_node, "code:which(rabbit_epmd_monitor)").endswith('/rabbit_epmd_monitor.beam"')
    assert answer_of(rabbitmq_node, "is_pid(whereis(rabbit_epmd_monitor))") == "true"


def test_rabbitmq_s_regular_check_of_epmd_starts_none(rabbitmq_node: Node) -> None:
    """RabbitMQ's epmd monitor makes this call, the first time a minute after the start."""
    assert answer_of(rabbitmq_node, "rabbit_nodes:ensure_epmd()") == "ok"
    home = str(rabbitmq_node.folder / "home")
    epmds = [process for process in psutil.process_iter() if process.name() == "epmd"]
    assert [process for process in epmds if has_home(process, home)] == []


def has_home(process: psutil.Process, home: str) -> bool:
    with contextlib.suppress(psutil.Error):
        return process.environ().get("HOME") == home
    return False


def test_a_node_s_environment_has_no_variables_of_the_test(rabbitmq_node: Node) -> None:
    environment = psutil.Process(rabbitmq_node.pid).environ()
    assert environment["HOME"].startswith(str(rabbitmq_node.folder))
    assert "PYTEST_CURRENT_TEST" not in environment


def test_no_command_line_and_no_log_has_the_password(rabbitmq_node: Node) -> None:
    password = rabbitmq_node.password
    assert (rabbitmq_node.folder / "password").read_text() == password
    assert len(password) >= 32
    assert password not in repr(rabbitmq_node)
    for process in psutil.process_iter(["cmdline"]):
        assert not any(password in word for word in process.info["cmdline"] or [])
    for log in (rabbitmq_node.folder / "log").iterdir():
        assert password not in log.read_text(errors="replace")


def test_no_other_user_can_read_a_node_s_folder(rabbitmq_node: Node) -> None:
    assert files_others_may_touch(rabbitmq_node.folder) == []


def test_accepted_sockets_have_tcp_nodelay(rabbitmq_node: Node) -> None:
    assert accepted_with_nodelay(rabbitmq_node.pid, rabbitmq_node.port)


def test_a_node_s_usage_grows_and_has_the_fields_of_a_component_s_usage(rabbitmq_node: Node) -> None:
    before = rabbitmq_node.usage()
    for _ in range(20):
        assert greeting_of(rabbitmq_node.host, rabbitmq_node.port, patience_s=PATIENCE_S)
    usage = rabbitmq_node.usage().since(before)
    component_usage = ResourceUsage.now().since(ResourceUsage.now())
    assert set(usage) == {*component_usage, "rss_bytes"}
    assert 0 < usage["cpu_s"] < 10
    assert rabbitmq_node.cpu_ns() >= before.cpu_ns + usage["cpu_s"] * 1e9
    assert usage["voluntary_context_switches"] > 0
    assert usage["rss_bytes"] > 30_000_000
    assert usage["max_rss_bytes"] >= usage["rss_bytes"]


def test_a_node_s_usage_covers_all_threads_and_no_children(rabbitmq_node: Node) -> None:
    process = psutil.Process(rabbitmq_node.pid)
    before = process.cpu_times()
    usage = rabbitmq_node.usage()
    after = process.cpu_times()
    two_ticks_s = 2 / os.sysconf("SC_CLK_TCK")  # the kernel counts user and system time in ticks
    assert usage.cpu_ns / 1e9 >= before.user + before.system - two_ticks_s
    assert usage.cpu_ns / 1e9 <= after.user + after.system + two_ticks_s
    switches_of_the_main_thread = process.num_ctx_switches().voluntary
    assert usage.voluntary > switches_of_the_main_thread


def test_the_usage_of_a_missing_process_is_an_oserror(rabbitmq_node: Node) -> None:
    gone = dataclasses.replace(rabbitmq_node, pid=2**22 + 1)
    with pytest.raises(OSError, match=r".*"):
        gone.usage()
    with pytest.raises(OSError, match=r".*"):
        gone.cpu_ns()


def test_usage_read_from_proc_agrees_with_this_process_s_own() -> None:
    expected = ResourceUsage.now()
    usage = ProcessUsage.of(os.getpid())
    assert usage.cpu_ns == pytest.approx(expected.cpu_ns, abs=100_000_000)


def test_a_thread_that_ends_during_the_reading_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    iterdir = Path.iterdir
    monkeypatch.setattr(Path, "iterdir", lambda folder: [*iterdir(folder), folder / "0"])
    assert ProcessUsage.of(os.getpid()).rss_bytes > 0
