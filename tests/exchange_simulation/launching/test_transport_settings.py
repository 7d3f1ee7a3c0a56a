"""The settings of a run that depend on its transport."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from exchange.allowed import BadSetting
from exchange.settings import RunSettings
from exchange_simulation.cli.main import main
from exchange_simulation.launching.errors import UserError
from exchange_simulation.launching.notices import notices_to
from exchange_simulation.launching.transport_settings import (
    check_exposure,
    check_transport,
    defaults_of,
    url_options_of,
    with_keys,
    with_other_keys,
    with_transport_defaults,
)


def test_a_transport_s_own_settings_have_its_defaults() -> None:
    settings = with_transport_defaults(RunSettings(transport="amqp", delivery="acked"))
    assert settings.amqp_client == "compiled"
    assert settings.delivery == "acked"
    assert with_transport_defaults(settings) == settings
    assert url_options_of(settings) == "client=compiled&delivery=acked"


def test_the_folder_of_keys_is_added_unless_the_url_names_the_same_folder() -> None:
    assert with_keys("tcp://127.0.0.1:1", "/k") == "tcp://127.0.0.1:1?keys=/k"
    assert with_keys("tcp://127.0.0.1:1?keys=/k", "/k") == "tcp://127.0.0.1:1?keys=/k"
    assert with_keys("tcp://127.0.0.1:1?keys=/k2", "/k") == "tcp://127.0.0.1:1?keys=/k2&keys=/k"


@pytest.mark.parametrize(
    ("text", "replaced"),
    [
        ("tcp://a:1?keys=/k", "tcp://a:1?keys=/copy"),
        ("tcp://a:1?keys=/k&nodelay=off", "tcp://a:1?keys=/copy&nodelay=off"),
        ("tcp://a:1?keys=/k tcp://b:2?keys=/k", "tcp://a:1?keys=/copy tcp://b:2?keys=/copy"),
        ("tcp://a:1?keys=/k2", "tcp://a:1?keys=/k2"),
        ("tcp://a:1?keys=/k/sub tcp://b:2?keys=/k", "tcp://a:1?keys=/k/sub tcp://b:2?keys=/copy"),
    ],
)
def test_only_the_same_folder_of_keys_is_replaced(text: str, replaced: str) -> None:
    assert with_other_keys(text, "/k", "/copy") == replaced


@pytest.mark.parametrize("written", ["/my%20keys", "/my keys"])
def test_a_folder_of_keys_is_replaced_quoted_or_as_typed(written: str) -> None:
    url = f"tcp://a:1?keys={written}&nodelay=off"
    assert with_other_keys(url, "/my keys", "/a copy") == "tcp://a:1?keys=/a%20copy&nodelay=off"


def test_another_transport_has_none_of_them() -> None:
    assert with_transport_defaults(RunSettings(transport="zeromq")) == RunSettings()
    assert url_options_of(RunSettings()) == ""
    assert defaults_of("zeromq") == {}
    assert defaults_of("no such") == {}


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"delivery": "acked"}, "delivery is 'acked'; allowed is nothing: zeromq has no broker"),
        ({"transport": "tcp", "amqp_client": "pika"}, "amqp-client is 'pika'; allowed is nothing: tcp has no broker"),
        ({"transport": "amqp", "delivery": "maybe"}, "allowed is lossy or acked or confirmed or durable"),
        ({"transport": "amqp", "delivery": "durabel"}, "confirmed or durable; did you mean 'durable'?"),
        ({"nagle": ("broker",)}, "nagle is 'broker'; allowed is gateway, engine, reporter; zeromq has no broker"),
    ],
)
def test_a_setting_that_the_transport_lacks_is_refused(settings: dict[str, object], sentence: str) -> None:
    with pytest.raises(BadSetting, match=re.escape(sentence)):
        with_transport_defaults(RunSettings(**settings))


@pytest.mark.parametrize(
    "url",
    [
        "tcp://0.0.0.0:7000",
        "zeromq+tcp://*:7000",
        "tcp://[::]:7000",
        "tcp://hostb:7000",
        "zeromq://eth0:7000",
        "tcp://192.0.2.1:7000?nodelay=off",
    ],
)
def test_who_listens_for_other_hosts_says_how(url: str) -> None:
    with pytest.raises(UserError, match=r"open to other hosts, and nothing is encrypted: give --secure.*--insecure"):
        check_exposure(url, insecure=False)
    heard: list[str] = []
    with notices_to(heard.append):
        check_exposure(with_keys(url, "/keys"), insecure=False)
        assert heard == []
        check_exposure(url, insecure=True)
    assert heard == [f"warning: {url} is open to other hosts, and nothing is encrypted"]


@pytest.mark.parametrize(
    "url",
    [
        "tcp://127.0.0.2:0",
        "tcp://[::1]:7000",
        "zeromq://localhost:1",
        "zeromq+ipc:///tmp/x",
        "amqp://hostb",
        "tcp://nowhere",
    ],
)
def test_a_listener_on_loopback_needs_no_option_insecure(url: str) -> None:
    check_exposure(url, insecure=False)


@pytest.mark.parametrize("role", ["engine", "reporter", "run", "bench role"])
def test_every_command_that_listens_asks(role: str, tmp_path: Path) -> None:
    place = "tcp://0.0.0.0:7000"
    words = {
        "engine": ["--listen", place, "--reporter", "tcp://hostc:7001", "--run", "x"],
        "reporter": ["--listen", place, "--run", "x", "--results", str(tmp_path / "results")],
        "run": ["--transport", place, "--results", str(tmp_path / "results")],
        "bench role": ["consume", "--listen", place, "--run", "x"],
    }
    finished = CliRunner().invoke(main, [*role.split(), *words[role]])
    assert finished.exit_code == 2
    assert f"{place} is open to other hosts" in finished.output, finished.output
    assert not list(tmp_path.iterdir())


def test_a_run_that_listens_for_other_hosts_warns_of_it_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise UserError("that is enough")

    monkeypatch.setattr("exchange_simulation.launching.launch.launcher.launch", refuse)
    words = ["run", "--transport", "tcp://0.0.0.0:7000", "--insecure", "--results", str(tmp_path / "results")]
    finished = CliRunner().invoke(main, words)
    assert "that is enough" in finished.output
    assert finished.output.count("tcp://0.0.0.0:7000 is open to other hosts") == 1


def test_keys_are_refused_before_the_run_where_they_cannot_serve(keys: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=rf"--secure is {keys}; memory has no encryption: use amqp, .*tcp, zeromq"):
        check_transport(RunSettings(transport="memory", secure=str(keys)))
    with pytest.raises(UserError, match=f"{tmp_path}/ca.pem is missing: make keys with: exchange keys DIR"):
        check_transport(RunSettings(secure=str(tmp_path)))
    check_transport(RunSettings(secure=str(keys)))


def test_an_unknown_transport_is_refused_with_those_that_are_known() -> None:
    with pytest.raises(UserError, match="unknown transport 'pigeon': known are amqp, amqps, memory, nats"):
        with_transport_defaults(RunSettings(transport="pigeon"))


def test_an_error_in_an_address_quotes_the_typed_text() -> None:
    with pytest.raises(UserError, match=r"^amqp\?queue=foo: queue is 'foo'; it takes classic, quorum, stream$"):
        with_transport_defaults(RunSettings(transport="amqp?queue=foo"))
