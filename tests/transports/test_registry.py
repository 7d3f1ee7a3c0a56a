"""How transports are found, and how one that cannot be imported is reported."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

import transports
from exchange.settings import RunSettings
from exchange_simulation.launching.errors import UserError
from exchange_simulation.launching.transport_checks import check_transport
from exchange_simulation.launching.transport_defaults import with_transport_defaults
from tests.transports.distributions import add_distribution, installed
from transports import registry
from transports.base import BadAddress, NotInstalled
from transports.registry import GROUP, built_in, connect, has_broker, known_schemes, transport_of

BROKEN_MODULE = "import a_client_that_nobody_has\n"
MISSING_MODULE = "'broken' needs the Python module 'a_client_that_nobody_has', which is not installed: try `pip install"
WIRE_MODULE = """
from transports.declaration import Transport
TRANSPORT = Transport(places={"wire": "port"}, listen=None, connect=None, over_tcp=frozenset({"wire"}))
"""
SOME_SCHEMES = ["amqp", "amqps", "memory", "tcp", "zeromq", "zeromq+ipc"]
"""A few of this repository's schemes, so that a new transport needs no entry here."""


def test_the_schemes_of_this_repository_are_found() -> None:
    assert set(SOME_SCHEMES) <= set(known_schemes())
    assert {scheme for transport in built_in().values() for scheme in transport.places} <= set(known_schemes())


def test_a_distribution_s_transport_without_its_library_harms_no_other(tmp_path: Path) -> None:
    add_distribution(tmp_path, "broken", "exchange_broken", BROKEN_MODULE)
    with installed(tmp_path):
        assert set(SOME_SCHEMES) <= set(known_schemes())
        assert "broken" not in known_schemes()
        with pytest.raises(NotInstalled, match=MISSING_MODULE):
            transport_of("broken")
        with pytest.raises(UserError, match=MISSING_MODULE):
            with_transport_defaults(RunSettings(transport="broken"))
        with pytest.raises(
            BadAddress, match=rf"unknown transport 'pigeon': known are amqp, .*; the transport {MISSING_MODULE}"
        ):
            transport_of("pigeon")
        assert transport_of("tcp").places == {"tcp": "port"}


def test_a_broken_file_of_this_package_harms_no_other(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text(BROKEN_MODULE)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(transports, "__path__", [*transports.__path__, str(tmp_path)])
        registry._of_this_package.cache_clear()
        assert set(SOME_SCHEMES) <= set(known_schemes())
        with pytest.raises(NotInstalled, match=MISSING_MODULE):
            transport_of("broken")
    registry._of_this_package.cache_clear()


def test_a_refusal_names_transports_of_other_distributions(tmp_path: Path) -> None:
    add_distribution(tmp_path, "wire", "exchange_wire", WIRE_MODULE)
    with installed(tmp_path), pytest.raises(UserError) as refused:
        check_transport(RunSettings(transport="memory", nagle=("gateway",)))
    sentence, _, schemes = str(refused.value).partition(": use ")
    assert sentence == "--nagle is gateway; memory has no TCP sockets"
    named = set(re.split(", | or ", schemes))
    assert {"amqp", "tcp", "wire", "zeromq+tcp"} <= named
    assert not named & {"memory", "zeromq+ipc"}


@pytest.mark.parametrize(
    ("setting", "is_wire_capable"),
    [({"topology": "simplex"}, False), ({"secure": "keys"}, False), ({"network": "veth"}, True)],
)
def test_a_refusal_names_only_transports_that_can_have_the_setting(
    setting: dict[str, str], is_wire_capable: bool, tmp_path: Path
) -> None:
    add_distribution(tmp_path, "wire", "exchange_wire", WIRE_MODULE)
    with installed(tmp_path), pytest.raises(UserError, match=r"use amqp, .*tcp, .*zeromq") as refused:
        check_transport(RunSettings(transport="memory", **setting))
    assert ("wire" in str(refused.value)) is is_wire_capable


def test_an_entry_point_without_a_transport_is_an_error(tmp_path: Path) -> None:
    add_distribution(tmp_path, "empty", "exchange_empty", "")
    with installed(tmp_path), pytest.raises(NotInstalled, match=r"'empty' cannot be imported: .*TRANSPORT"):
        transport_of("empty")


def test_a_missing_client_library_is_named_with_its_install_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pika", None)
    message = "amqp needs the Python module 'pika', which is not installed: `pip install pika`"
    with pytest.raises(NotInstalled, match=message):
        connect("amqp://127.0.0.1:1", "token", 0)
    with pytest.raises(UserError, match=message):
        with_transport_defaults(RunSettings(transport="amqp"))
    assert "amqp" in known_schemes()


def test_only_transports_that_declare_a_broker_have_one() -> None:
    assert [scheme for scheme in SOME_SCHEMES if has_broker(scheme)] == ["amqp", "amqps"]
    assert has_broker("amqp://me@host:1/?delivery=acked")
    assert not has_broker("pigeon")


def test_the_group_of_entry_points_is_documented() -> None:
    page = Path(__file__).parents[2] / "docs" / "adding-a-transport.md"
    assert f'[project.entry-points."{GROUP}"]' in page.read_text()


def test_a_transport_that_fails_in_its_import_harms_no_other(tmp_path: Path) -> None:
    add_distribution(tmp_path, "odd", "exchange_odd", "raise TypeError('of its own')\n")
    with installed(tmp_path):
        assert "odd" not in known_schemes()
        with pytest.raises(NotInstalled, match="'odd' cannot be imported: TypeError: of its own"):
            transport_of("odd")
        with pytest.raises(BadAddress, match="did you mean zeromq"):
            transport_of("zeromk")
