"""A node that cannot start gives the reason in a sentence, and leaves nothing."""

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

Pretender = Callable[[str], None]


@pytest.fixture
def not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boot, "USUAL_PLACES", ())
    monkeypatch.setenv("PATH", "/nowhere")


@pytest.mark.usefixtures("not_installed")
def test_where_rabbitmq_is_not_installed_it_says_what_to_type(tmp_path: Path) -> None:
    with pytest.raises(RabbitMqMissing) as missing:
        Node.start(tmp_path / "node")
    assert "`sudo apt-get install rabbitmq-server`" in str(missing.value)
    assert "`brew install rabbitmq`" in str(missing.value)
    assert not (tmp_path / "node").exists()


@pytest.mark.usefixtures("not_installed")
def test_a_test_without_rabbitmq_fails_unless_it_is_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It fails with the sentence that says what to install."""
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
def test_debian_s_wrapper_that_changes_the_user_is_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wrapper = tmp_path / "rabbitmq-script-wrapper"
    wrapper.write_text("#!/bin/sh\n")
    wrapper.chmod(0o755)
    (tmp_path / "rabbitmq-server").symlink_to(wrapper)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RabbitMqMissing):
        boot.find_server()


def test_a_server_that_was_named_wrongly_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXCHANGE_RABBITMQ_SERVER", "/nowhere/rabbitmq-server")
    with pytest.raises(RabbitMqMissing, match="EXCHANGE_RABBITMQ_SERVER names /nowhere/rabbitmq-server"):
        boot.find_server()


def test_a_taken_port_is_named(tmp_path: Path, pretender: Pretender) -> None:
    pretender("exit 3")
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(NodePortTaken, match=rf"port {port} cannot be had for RabbitMQ \(Address already in use\)"):
            Node.start(tmp_path / "node", port=port)
    assert not (tmp_path / "node").exists()


def test_a_node_that_ends_instead_of_starting_is_quoted(tmp_path: Path, pretender: Pretender) -> None:
    pretender("echo 'BOOT FAILED: no such luck'; exit 3")
    with pytest.raises(NodeDidNotStart, match=r"exit code 3.*\nBOOT FAILED: no such luck"):
        Node.start(tmp_path / "node")
    assert not (tmp_path / "node").exists()


def test_a_node_that_never_gets_ready_is_ended_and_its_log_quoted(tmp_path: Path, pretender: Pretender) -> None:
    pretender("echo waiting for Godot > ../asked; echo hopeless > log/node.log; exec sleep 600")
    with pytest.raises(NodeDidNotStart, match=r"did not speak AMQP in time.*\nhopeless"):
        Node.start(tmp_path / "folder" / "node", patience_s=0.5)
    assert (tmp_path / "folder" / "asked").exists()
    assert not (tmp_path / "folder" / "node").exists()


def test_a_program_that_cannot_be_run_is_a_sentence(tmp_path: Path, pretender: Pretender) -> None:
    pretender("")
    (tmp_path / "rabbitmq-server").write_text("no program")
    with pytest.raises(NodeDidNotStart, match="cannot be started: Exec format error"):
        Node.start(tmp_path / "node")
    assert not (tmp_path / "node").exists()


def test_a_folder_that_exists_is_left_alone(tmp_path: Path, pretender: Pretender) -> None:
    pretender("exit 3")
    (tmp_path / "mine").write_text("kept")
    with pytest.raises(RabbitMqError, match=r"cannot make RabbitMQ's folder .*: File exists"):
        Node.start(tmp_path)
    assert (tmp_path / "mine").read_text() == "kept"


@pytest.mark.parametrize(
    "nonsense",
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
def test_nonsense_is_refused_by_the_settings_and_named(nonsense: dict[str, Any]) -> None:
    with pytest.raises(BadNodeSetting, match=next(iter(nonsense))):
        NodeSettings(**nonsense)


def test_settings_become_rabbitmq_s_terms() -> None:
    settings = NodeSettings(
        nodelay=False, send_buffer_bytes=4096, receive_buffer_bytes=8192, memory_mark=1e9, extra={"heartbeat": "0"}
    )
    terms = settings.terms("127.0.0.1", 7000, "exchange", "secret")
    for term in (
        '{tcp_listeners, [{"127.0.0.1", 7000}]}',
        "{nodelay, false}, {sndbuf, 4096}, {recbuf, 8192}",
        "{vm_memory_high_watermark, {absolute, 1000000000}}",
        "{heartbeat, 0}",
        '{default_pass, <<"secret">>}',
    ):
        assert term in terms
    assert "{vm_memory_high_watermark, 0.4" in NodeSettings().terms("127.0.0.1", 1, "u", "p")
