"""amqps: links over TLS to a real broker with a certificate of a test's own authority."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.transports.amqp.certificates import make_authority
from tests.transports.amqp.tls_listener import Secured, tls_listener
from tests.transports.conftest import TOKEN, carry, deadline_ns, joined, serve_links_until
from transports.amqp.address import CA_FILE, PASSWORD
from transports.base import BadAddress, TransportError
from transports.frames import LARGEST_FRAME, FrameBatch
from transports.rabbitmq import Node
from transports.registry import listen
from transports.waiting import Sleeper

CLIENTS = ("compiled", "pika")
MANY = [number.to_bytes(4, "little") for number in range(1000)]
LONG = [bytes([number]) * LARGEST_FRAME for number in range(36)]
"""More frames than the link's buffer takes at once. Each makes many TLS records."""


@pytest.fixture(scope="module")
def secured(rabbitmq_node: Node, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    """The node that all tests share. It listens for TLS during these tests."""
    with tls_listener(rabbitmq_node, tmp_path_factory.mktemp("tls")) as secured:
        yield secured


@pytest.fixture(autouse=True)
def trust_the_authority(secured: Secured, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PASSWORD, secured.node.password)
    monkeypatch.setenv(CA_FILE, str(secured.authority.certificate))


@pytest.fixture(autouse=True)
def no_descriptor_is_left() -> Iterator[None]:
    """Check that a test leaves no open descriptor, also one of which Python does not warn."""
    before = psutil.Process().num_fds()
    yield
    assert psutil.Process().num_fds() == before


@pytest.mark.parametrize("frames", [MANY, LONG], ids=["many", "long"])
@pytest.mark.parametrize("client", CLIENTS)
def test_frames_arrive_both_ways_over_tls(client: str, frames: list[bytes], secured: Secured) -> None:
    with joined(secured.url(client)) as (listener, connector):
        assert list(carry(connector, listener, FrameBatch.of(*frames))) == frames
        assert list(carry(listener, connector, FrameBatch.of(*frames))) == frames


@pytest.mark.parametrize("client", CLIENTS)
def test_a_certificate_of_another_authority_is_refused_with_advice(
    client: str, secured: Secured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CA_FILE, str(make_authority(tmp_path, "stranger").certificate))
    with pytest.raises(BadAddress, match=rf"certificate is not trusted.*{CA_FILE} is to name") as refused:
        listen(secured.url(client), TOKEN)
    assert f"127.0.0.1:{secured.port}" in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("client", CLIENTS)
def test_a_certificate_is_refused_with_advice_without_a_ca_file(
    client: str, secured: Secured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(CA_FILE)
    with pytest.raises(BadAddress, match=rf"certificate is not trusted.*{CA_FILE} is to name"):
        listen(secured.url(client), TOKEN)


@pytest.mark.parametrize("client", CLIENTS)
def test_a_certificate_for_another_host_is_refused(client: str, secured: Secured) -> None:
    with pytest.raises(BadAddress, match="certificate is not for 'localhost'"):
        listen(secured.url(client, host="localhost"), TOKEN)


@pytest.mark.parametrize("client", CLIENTS)
def test_a_port_without_tls_is_an_error(client: str, secured: Secured) -> None:
    plain = Secured(secured.node, secured.node.port, secured.authority)
    with pytest.raises(BadAddress, match=r"does not speak TLS.*amqp://"):
        listen(plain.url(client), TOKEN)


@pytest.mark.parametrize("client", CLIENTS)
def test_an_amqp_address_of_a_tls_port_is_an_error(client: str, secured: Secured) -> None:
    with pytest.raises(TransportError, match="amqps://"):
        listen(secured.url(client, scheme="amqp"), TOKEN)


def test_the_loop_does_not_sleep_while_openssl_has_decrypted_bytes(
    secured: Secured, monkeypatch: pytest.MonkeyPatch
) -> None:
    with joined(secured.url()) as (listener, connector):
        loop = listener._loop  # type: ignore[attr-defined]
        assert connector.send(FrameBatch.of(bytes(5000)), 0) == 1
        loop.stream.begin = 0
        loop.stream.end = len(loop.stream.incoming) - 10  # room for ten bytes only
        serve_links_until(lambda: loop.stream.fill() == 10, connector)
        assert loop.stream.has_decrypted
        with monkeypatch.context() as patch:
            patch.setattr(Sleeper, "sleep", lambda *_: pytest.fail("the loop slept"))
            loop.sleep(deadline_ns())
        loop.stream.begin = loop.stream.end
        assert loop.stream.fill() > 0
        assert not loop.stream.has_decrypted


def test_an_unusable_ca_file_is_named(secured: Secured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "empty.pem").write_text("")
    for path in (tmp_path / "empty.pem", tmp_path / "nowhere.pem"):
        monkeypatch.setenv(CA_FILE, str(path))
        with pytest.raises(BadAddress, match=rf"{CA_FILE}: cannot use {path}"):
            listen(secured.url(), TOKEN)
