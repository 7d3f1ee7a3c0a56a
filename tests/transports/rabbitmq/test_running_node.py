"""A node that is up: where it listens, who can read what, and what it tells."""

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


def test_it_speaks_amqp_and_says_which_rabbitmq_it_is(rabbitmq_node: Node) -> None:
    greeting = greeting_of(rabbitmq_node.host, rabbitmq_node.port, patience_s=PATIENCE_S)
    assert greeting is not None
    facts = rabbitmq_node.facts()
    assert (greeting.product, greeting.version) == ("RabbitMQ", facts["version"])
    assert facts["version"].count(".") >= 2
    assert greeting.platform == f"Erlang/OTP {facts['erlang']}"
    assert (facts["pid"], facts["port"]) == (rabbitmq_node.pid, rabbitmq_node.port)
    assert facts["settings"]["nodelay"] is True


def test_the_node_and_its_helpers_listen_on_one_loopback_address_only(rabbitmq_node: Node) -> None:
    listening = [
        tuple(found.laddr)
        for process in family(rabbitmq_node.pid)
        for found in process.net_connections("inet")
        if found.status in {psutil.CONN_LISTEN, psutil.CONN_NONE}
    ]
    assert listening == [("127.0.0.1", rabbitmq_node.port)]


def test_it_starts_no_epmd_and_no_helper_that_outlives_it(rabbitmq_node: Node) -> None:
    assert {process.name() for process in family(rabbitmq_node.pid)} <= {"beam.smp", "erl_child_setup", "sh", "df"}
    assert "-start_epmd false" in " ".join(psutil.Process(rabbitmq_node.pid).cmdline())


def answer_of(node: Node, expression: str) -> str:
    """What the node says to an Erlang expression."""
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


def test_what_rabbitmq_does_each_minute_for_its_epmd_brings_up_none(rabbitmq_node: Node) -> None:
    """RabbitMQ's epmd monitor makes this call, the first time a minute after the start."""
    assert answer_of(rabbitmq_node, "rabbit_nodes:ensure_epmd()") == "ok"
    home = str(rabbitmq_node.folder / "home")
    assert [process for process in psutil.process_iter() if process.name() == "epmd" and has_home(process, home)] == []


def has_home(process: psutil.Process, home: str) -> bool:
    with contextlib.suppress(psutil.Error):
        return process.environ().get("HOME") == home
    return False


def test_its_environment_has_nothing_of_ours_but_path(rabbitmq_node: Node) -> None:
    environment = psutil.Process(rabbitmq_node.pid).environ()
    assert environment["HOME"].startswith(str(rabbitmq_node.folder))
    assert "PYTEST_CURRENT_TEST" not in environment


def test_the_password_is_on_no_command_line_and_in_no_log(rabbitmq_node: Node) -> None:
    password = rabbitmq_node.password
    assert (rabbitmq_node.folder / "password").read_text() == password
    assert len(password) >= 32
    assert password not in repr(rabbitmq_node)
    for process in psutil.process_iter(["cmdline"]):
        assert not any(password in word for word in process.info["cmdline"] or [])
    for log in (rabbitmq_node.folder / "log").iterdir():
        assert password not in log.read_text(errors="replace")


def test_nobody_else_can_read_its_folder(rabbitmq_node: Node) -> None:
    assert files_others_may_touch(rabbitmq_node.folder) == []


def test_accepted_sockets_have_tcp_nodelay(rabbitmq_node: Node) -> None:
    assert accepted_with_nodelay(rabbitmq_node.pid, rabbitmq_node.port)


def test_its_usage_grows_and_has_the_names_of_a_component_s(rabbitmq_node: Node) -> None:
    before = rabbitmq_node.usage()
    for _ in range(20):
        assert greeting_of(rabbitmq_node.host, rabbitmq_node.port, patience_s=PATIENCE_S)
    used = rabbitmq_node.usage().since(before)
    of_a_component = ResourceUsage.now().since(ResourceUsage.now())
    assert set(used) == {*of_a_component, "rss_bytes"}
    assert 0 < used["cpu_s"] < 10
    assert rabbitmq_node.cpu_ns() >= before.cpu_ns + used["cpu_s"] * 1e9
    assert used["voluntary_context_switches"] > 0
    assert used["max_rss_bytes"] >= used["rss_bytes"] > 30_000_000


def test_cpu_time_and_switches_are_those_of_all_threads_without_children(rabbitmq_node: Node) -> None:
    process = psutil.Process(rabbitmq_node.pid)
    before, usage, after = process.cpu_times(), rabbitmq_node.usage(), process.cpu_times()
    tick_s = 2 / os.sysconf("SC_CLK_TCK")
    assert sum(before[:2]) - tick_s <= usage.cpu_ns / 1e9 <= sum(after[:2]) + tick_s
    assert usage.voluntary > process.num_ctx_switches().voluntary  # which psutil has of one thread


def test_the_usage_of_a_process_that_is_gone_is_an_oserror(rabbitmq_node: Node) -> None:
    gone = dataclasses.replace(rabbitmq_node, pid=2**22 + 1)
    with pytest.raises(OSError, match=r".*"):
        gone.usage()
    with pytest.raises(OSError, match=r".*"):
        gone.cpu_ns()


def test_usage_of_this_process_is_what_the_kernel_says_of_it() -> None:
    ours, theirs = ResourceUsage.now(), ProcessUsage.of(os.getpid())
    assert theirs.cpu_ns == pytest.approx(ours.cpu_ns, abs=100_000_000)


def test_a_thread_that_ends_while_usage_is_read_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    listed = Path.iterdir
    monkeypatch.setattr(Path, "iterdir", lambda folder: [*listed(folder), folder / "0"])
    assert ProcessUsage.of(os.getpid()).rss_bytes > 0
