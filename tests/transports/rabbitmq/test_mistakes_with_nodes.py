"""A node that cannot start gives the reason in a sentence, and leaves no folder."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests import broker
from transports.rabbitmq import (
    BadNodeSetting,
    Node,
    NodeDidNotStart,
    NodePortTaken,
    NodeSettings,
    RabbitMqError,
    RabbitMqMissing,
    boot,
)

PutFakeServer = Callable[[str], None]


@pytest.fixture
def not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boot, "USUAL_PLACES", ())
    monkeypatch.setenv("PATH", "/nowhere")


@pytest.mark.usefixtures("not_installed")
def test_a_missing_rabbitmq_is_an_error_with_install_commands(tmp_path: Path) -> None:
    with pytest.raises(RabbitMqMissing) as missing:
        Node.start(tmp_path / "node")
    assert "`sudo apt-get install rabbitmq-server`" in str(missing.value)
    assert "`brew install rabbitmq`" in str(missing.value)
    assert not (tmp_path / "node").exists()


@pytest.mark.usefixtures("not_installed")
def test_a_test_without_rabbitmq_fails_unless_it_may_be_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(broker.LEAVE_OUT_VARIABLE, raising=False)
    with pytest.raises(pytest.fail.Exception, match=r"apt-get install rabbitmq-server.*leaves this test out"):
        broker.need_rabbitmq()
    monkeypatch.setenv(broker.LEAVE_OUT_VARIABLE, "1")
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception):
        broker.need_rabbitmq()
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="CI has every program"):
        broker.need_rabbitmq()


@pytest.mark.usefixtures("not_installed")
def test_debian_s_wrapper_which_changes_the_user_is_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wrapper = tmp_path / "rabbitmq-script-wrapper"
    wrapper.write_text("#!/bin/sh\n")
    wrapper.chmod(0o755)
    (tmp_path / "rabbitmq-server").symlink_to(wrapper)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RabbitMqMissing):
        boot.find_server()


def test_a_wrong_path_in_the_server_variable_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXCHANGE_RABBITMQ_SERVER", "/nowhere/rabbitmq-server")
    with pytest.raises(RabbitMqMissing, match="EXCHANGE_RABBITMQ_SERVER names /nowhere/rabbitmq-server"):
        boot.find_server()


def test_a_taken_port_is_named(tmp_path: Path, fake_server: PutFakeServer) -> None:
    fake_server("exit 3")
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(NodePortTaken, match=rf"port {port} cannot be had for RabbitMQ \(Address already in use\)"):
            Node.start(tmp_path / "node", port=port)
    assert not (tmp_path / "node").exists()


def test_the_output_of_a_node_that_fails_to_start_is_quoted(tmp_path: Path, fake_server: PutFakeServer) -> None:
    fake_server("echo 'BOOT FAILED: no such luck'; exit 3")
    with pytest.raises(NodeDidNotStart, match=r"exit code 3.*\nBOOT FAILED: no such luck"):
        Node.start(tmp_path / "node")
    assert not (tmp_path / "node").exists()


def test_a_node_that_is_never_ready_is_ended_and_its_log_quoted(tmp_path: Path, fake_server: PutFakeServer) -> None:
    fake_server("echo waiting for Godot > ../asked; echo hopeless > log/node.log; exec sleep 600")
    with pytest.raises(NodeDidNotStart, match=r"did not speak AMQP in time.*\nhopeless"):
        Node.start(tmp_path / "folder" / "node", patience_s=0.5)
    assert (tmp_path / "folder" / "asked").exists()
    assert not (tmp_path / "folder" / "node").exists()


def test_a_program_that_cannot_be_run_is_an_error(tmp_path: Path, fake_server: PutFakeServer) -> None:
    fake_server("")
    (tmp_path / "rabbitmq-server").write_text("no program")
    with pytest.raises(NodeDidNotStart, match="cannot be started: Exec format error"):
        Node.start(tmp_path / "node")
    assert not (tmp_path / "node").exists()


def test_an_existing_folder_is_refused_and_unchanged(tmp_path: Path, fake_server: PutFakeServer) -> None:
    fake_server("exit 3")
    (tmp_path / "mine").write_text("kept")
    with pytest.raises(RabbitMqError, match=r"cannot make RabbitMQ's folder .*: File exists"):
        Node.start(tmp_path)
    assert (tmp_path / "mine").read_text() == "kept"


@pytest.mark.parametrize(
    "wrong_setting",
    [
        {"memory_mark": -0.1},
        {"memory_mark": float("nan")},
        {"send_buffer_bytes": 0},
        {"receive_buffer_bytes": 1 << 40},
        {"disk_limit_bytes": -1},
        {"extra": {"not a name": "1"}},
        {"extra": {"heartbeat": " "}},
    ],
)
def test_a_wrong_setting_is_refused_with_its_name(wrong_setting: dict[str, Any]) -> None:
    [name] = wrong_setting
    with pytest.raises(BadNodeSetting, match=name):
        NodeSettings(**wrong_setting)


def test_settings_are_written_as_erlang_terms() -> None:
    settings = NodeSettings(
        nodelay=False, send_buffer_bytes=4096, receive_buffer_bytes=8192, memory_mark=1e9, extra={"heartbeat": "0"}
    )
    terms = settings.config_text("127.0.0.1", 7000, "exchange", "secret")
    for term in (
        '{tcp_listeners, [{"127.0.0.1", 7000}]}',
        "{nodelay, false}, {sndbuf, 4096}, {recbuf, 8192}",
        "{vm_memory_high_watermark, {absolute, 1000000000}}",
        "{heartbeat, 0}",
        '{default_pass, <<"secret">>}',
    ):
        assert term in terms
    assert "{vm_memory_high_watermark, 0.4" in NodeSettings().config_text("127.0.0.1", 1, "u", "p")
