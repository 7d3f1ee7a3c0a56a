"""How transports are found, and what becomes of one that cannot be imported."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import transports
from exchange.settings import RunSettings
from exchange_simulation.launching.errors import UserError
from exchange_simulation.launching.transport_settings import check_transport, with_transport_defaults
from tests.transports.distributions import add_distribution, installed
from transports import registry
from transports.base import BadAddress, NotInstalled
from transports.registry import GROUP, built_in, connect, has_broker, known_schemes, transport_of

BROKEN = "import a_client_that_nobody_has\n"
LACKS = "'broken' needs the Python module 'a_client_that_nobody_has', which is not installed: try `pip install"
WIRE = """
from transports.declaration import Transport
TRANSPORT = Transport(places={"wire": "port"}, listen=None, connect=None, over_tcp=frozenset({"wire"}))
"""
OURS = ["amqp", "amqps", "memory", "nats", "shm", "tcp", "zeromq", "zeromq+inproc", "zeromq+ipc", "zeromq+tcp"]


def test_the_schemes_of_this_repository_are_found() -> None:
    assert set(OURS) <= set(known_schemes())
    assert sorted(scheme for transport in built_in().values() for scheme in transport.places) == OURS


def test_another_s_transport_without_its_library_harms_no_other(tmp_path: Path) -> None:
    """It says what it lacks."""
    add_distribution(tmp_path, "broken", "exchange_broken", BROKEN)
    with installed(tmp_path):
        assert set(OURS) <= set(known_schemes())
        assert "broken" not in known_schemes()
        with pytest.raises(NotInstalled, match=LACKS):
            transport_of("broken")
        with pytest.raises(UserError, match=LACKS):
            with_transport_defaults(RunSettings(transport="broken"))
        with pytest.raises(BadAddress, match=rf"unknown transport 'pigeon': known are amqp, .*; the transport {LACKS}"):
            transport_of("pigeon")
        assert transport_of("tcp").places == {"tcp": "port"}


def test_a_file_of_this_package_that_cannot_be_imported_harms_no_other(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text(BROKEN)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(transports, "__path__", [*transports.__path__, str(tmp_path)])
        registry._of_this_package.cache_clear()
        assert set(OURS) <= set(known_schemes())
        with pytest.raises(NotInstalled, match=LACKS):
            transport_of("broken")
    registry._of_this_package.cache_clear()


def test_a_refusal_names_other_distributions_transports_too(tmp_path: Path) -> None:
    add_distribution(tmp_path, "wire", "exchange_wire", WIRE)
    with installed(tmp_path), pytest.raises(UserError) as refused:
        check_transport(RunSettings(transport="memory", nagle=("gateway",)))
    assert str(refused.value) == (
        "--nagle is gateway; memory has no TCP sockets: use amqp, amqps, nats, tcp, wire, zeromq or zeromq+tcp"
    )
    for asked in ({"topology": "simplex"}, {"secure": "keys"}, {"network": "veth"}):
        with installed(tmp_path), pytest.raises(UserError, match=r"use amqp, .*tcp, .*zeromq") as refused:
            check_transport(RunSettings(transport="memory", **asked))
        assert ("wire" in str(refused.value)) == ("network" in asked)


def test_an_entry_point_without_a_transport_says_so(tmp_path: Path) -> None:
    add_distribution(tmp_path, "empty", "exchange_empty", "")
    with installed(tmp_path), pytest.raises(NotInstalled, match=r"'empty' cannot be imported: .*TRANSPORT"):
        transport_of("empty")


def test_a_client_library_that_is_missing_is_named_with_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pika", None)
    lacks = "amqp needs the Python module 'pika', which is not installed: `pip install pika`"
    with pytest.raises(NotInstalled, match=lacks):
        connect("amqp://127.0.0.1:1", "token", 0)
    with pytest.raises(UserError, match=lacks):
        with_transport_defaults(RunSettings(transport="amqp"))
    assert "amqp" in known_schemes()


def test_only_a_declared_broker_stands_between() -> None:
    assert [name for name in (*OURS, "pigeon", "amqp://me@host:1/?delivery=acked") if has_broker(name)] == [
        "amqp",
        "amqps",
        "nats",
        "amqp://me@host:1/?delivery=acked",
    ]


def test_the_group_of_entry_points_is_the_documented_one() -> None:
    page = Path(__file__).parents[2] / "docs" / "adding-a-transport.md"
    assert f'[project.entry-points."{GROUP}"]' in page.read_text()


def test_one_that_breaks_while_it_is_imported_harms_no_other(tmp_path: Path) -> None:
    add_distribution(tmp_path, "odd", "exchange_odd", "raise TypeError('of its own')\n")
    with installed(tmp_path):
        assert "odd" not in known_schemes()
        with pytest.raises(NotInstalled, match="'odd' cannot be imported: TypeError: of its own"):
            transport_of("odd")
        with pytest.raises(BadAddress, match="did you mean zeromq"):
            transport_of("zeromk")
