"""The file of --hosts: what it gives each component, and the line and key of each mistake."""

from __future__ import annotations

from pathlib import Path

import pytest

from exchange.settings import RunSettings
from exchange_simulation.launching.errors import UserError
from exchange_simulation.launching.hosts.checks import check_hosts
from exchange_simulation.launching.hosts.hosts_file import HERE, Host, read_hosts_file

EXAMPLE = """\
[engine]
before = "ssh -p 2222 engine1"
address = "10.0.0.2"
listen = "0.0.0.0"
exchange = "/opt/exchange/bin/exchange"

[gateway]
before = "ip netns exec h1"

[gateway.2]
before = "ip netns exec h2"
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "hosts.toml"
    path.write_text(text)
    return path


def test_each_component_has_its_own_table_or_that_of_its_role(tmp_path: Path) -> None:
    file = read_hosts_file(written(tmp_path, EXAMPLE))
    engine = file.entry_of("engine")
    assert engine.host == Host(("ssh", "-p", "2222", "engine1"), "/opt/exchange/bin/exchange")
    assert (engine.address, engine.listens_on) == ("10.0.0.2", "0.0.0.0")
    assert file.entry_of("gateway").host.before[-1] == "h1"
    assert file.entry_of("gateway.2").host.before[-1] == "h2"
    assert file.entry_of("gateway.3").host.before[-1] == "h1"
    assert file.entry_of("reporter").host == HERE


def test_a_host_runs_exchange_behind_its_prefix(tmp_path: Path) -> None:
    host = read_hosts_file(written(tmp_path, EXAMPLE)).entry_of("gateway.2").host
    assert host.command("--version") == ["ip", "netns", "exec", "h2", "exchange", "--version"]
    assert host.name == "ip netns exec h2"


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        ("", "names no host: give a table for a role, as [engine]"),
        ("[engin]\nbefore = 'x'\n", "line 1: 'engin' is no role: a table is for gateway, engine, reporter, subscriber, "
         "broker, publisher, consumer; did you mean 'engine'?"),
        ("engine = 'ssh a'\n", "line 1: engine is 'ssh a'; allowed is a table, [engine]"),
        ("[engine]\n\nbefor = 'ssh a'\n", "line 3: [engine]: 'befor' is no key; allowed are before, address, listen, "
         "exchange; did you mean 'before'?"),
        ("[engine]\nbefore = 5\n", "line 2: [engine]: before is 5; allowed is a text in quotes"),
        ("[engine]\nbefore = ''\n", "line 2: [engine]: before is ''; allowed is a text in quotes"),
        ("[engine]\nbefore = \"ssh 'a\"\n", "line 2: [engine]: before is \"ssh 'a\", in which a quotation does not"),
        ("[reporter]\nbefore = 'a'\n[engine]\naddress = '10.0.0.2:80'\n", "line 4: [engine]: address is '10.0.0.2:80'; "
         "allowed is a host name or an IPv4 address, without a port"),
        ("[engine]\nlisten = '0.0.0.0'\n", "line 2: [engine]: listen is '0.0.0.0', and peers need an address too"),
        ("[engine]\nbefore = 'ssh a'\nexchange = 'a b'\n", "line 3: [engine]: exchange is 'a b'; allowed is a path of"),
        ("[engine]\nexchange = 'x'\n", "line 2: [engine]: exchange is 'x'; it is for another host"),
        ("[gateway.first]\nbefore = 'a'\n", "line 1: [gateway.first]: 'first' is no number of a further gateway"),
        ("[gateway.1]\nbefore = 'a'\n", "line 1: [gateway.1]: '1' is no number of a further gateway"),
        ("[gateway]\nbefore = \n", "is no TOML that can be read"),
    ],
)  # fmt: skip
def test_a_mistake_is_named_with_its_line_and_what_is_allowed(tmp_path: Path, text: str, mistake: str) -> None:
    with pytest.raises(UserError) as refused:
        read_hosts_file(written(tmp_path, text))
    assert mistake in refused.value.message
    assert str(tmp_path / "hosts.toml") in refused.value.message


ENGINE_ELSEWHERE = "[engine]\nbefore = 'ssh a'\naddress = '10.0.0.2'\n[reporter]\naddress = '10.0.0.1'\n"


@pytest.mark.parametrize(
    ("text", "settings", "mistake"),
    [
        (ENGINE_ELSEWHERE, {"transport": "shm"}, "shm cannot leave a host: use "),
        (ENGINE_ELSEWHERE, {"transport": "memory"}, "memory cannot leave a host: use "),
        (ENGINE_ELSEWHERE, {"network": "veth"}, "it does not go together with --network: it makes hosts of its own"),
        (ENGINE_ELSEWHERE, {"recover": True}, "it does not go together with --recover: a killed component is"),
        (ENGINE_ELSEWHERE, {"capture": True}, "it does not go together with --capture: tcpdump runs on this host"),
        (
            ENGINE_ELSEWHERE,
            {},
            "other hosts reach the engine and the reporter, and nothing is encrypted: give --secure",
        ),
        ("[engine]\nbefore = 'ssh a'\n", {}, "[engine] has no address, and the gateway, on this host, connects to it"),
        ("[engine]\nbefore = 'ssh a'\naddress = 'a'\n", {}, "[reporter] has no address, and the engine, on ssh a, "),
        ("[gateway]\nbefore = 'ssh a'\n[gateway.3]\nbefore = 'ssh b'\n", {"pairs": 2}, "has a table for gateway.3"),
        ("[broker]\naddress = 'a'\n", {}, "has a table [broker], and zeromq has no broker"),
        ("[broker]\nbefore = 'ssh a'\n", {"transport": "amqp"}, "[broker] has no address, and the reporter, on this"),
        ("[broker]\naddress = 'a'\n", {"transport": "amqp://b:5672"}, "amqp://b:5672 names the broker: leave one out"),
    ],
)
def test_a_run_that_its_hosts_cannot_have_is_refused(
    tmp_path: Path, text: str, settings: dict[str, object], mistake: str
) -> None:
    path = written(tmp_path, text)
    with pytest.raises(UserError) as refused:
        check_hosts(RunSettings(hosts=str(path), **settings))  # type: ignore[arg-type]
    assert mistake in refused.value.message


def test_components_of_one_host_need_no_address(tmp_path: Path) -> None:
    roles = ("gateway", "engine", "reporter")
    path = written(tmp_path, "".join(f"[{role}]\nbefore = 'ssh a'\n" for role in roles))
    check_hosts(RunSettings(hosts=str(path)))


def test_a_file_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"--hosts is .*nowhere.toml, and there is no such file"):
        read_hosts_file(tmp_path / "nowhere.toml")
