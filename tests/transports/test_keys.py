"""Keys: their folder, admission of peers by their keys, and encryption."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import ssl
import struct
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from threading import Thread
from urllib.parse import urlsplit

import pytest
import zmq

from exchange_simulation.launching.transport_urls import with_keys
from tests.broker import need_rabbitmq
from tests.transports.conftest import TOKEN, carry, connect_while_serving, deadline_ns, greet, joined, serve_links_until
from transports import keys as keys_module
from transports.amqp.address import PASSWORD
from transports.amqp.broker import PrivateRabbitMq, RabbitMq
from transports.base import BadAddress, Link, PeerGone
from transports.declaration import RunningBroker, ServerPlace
from transports.frames import FrameBatch
from transports.keys import CONNECTOR, FILES, LISTENER, SECRETS, Keys, make_keys
from transports.rabbitmq.node import greeting_of
from transports.registry import connect, listen

pytestmark = pytest.mark.xdist_group("keys")

SCHEMES = ("tcp", "zeromq")


@pytest.fixture
def own(keys: Path, tmp_path: Path) -> Path:
    """A copy of the keys that a test may damage."""
    return Path(shutil.copytree(keys, tmp_path / "own"))


def test_only_the_owner_may_read_new_keys_and_the_ca_s_key_is_deleted(keys: Path) -> None:
    assert keys.stat().st_mode & 0o777 == 0o700
    assert {path.name: path.stat().st_mode & 0o777 for path in keys.iterdir()} == dict.fromkeys(FILES, 0o600)
    assert [path.name for path in keys.parent.iterdir()] == [keys.name], "nothing else is left in the folder above"


def test_a_tcp_link_does_not_sleep_while_tls_holds_bytes_that_found_no_room(
    keys: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The memory for bytes that came ends within a record of TLS, and no descriptor shows the rest of that record."""
    monkeypatch.setattr("transports.waiting.LONGEST_SLEEP_NS", 2**62)
    sent = [bytes(1_000)] * 1_306
    with joined(f"tcp://127.0.0.1:0?keys={keys}") as (listener, connector):
        assert connector.send(FrameBatch.of(*sent), 0) == len(sent)
        assert connector.drain(deadline_ns()), "the system's buffers are smaller than the burst"
        received: list[bytes] = []
        batch = FrameBatch()
        until_ns = deadline_ns(10)
        while len(received) < len(sent):
            listener.wait(until_ns)
            assert time.monotonic_ns() < until_ns, f"it slept with {len(received)} of {len(sent)} frames"
            batch.clear()
            listener.receive(batch)
            received += batch
    assert received == sent


def test_keys_are_not_made_in_an_existing_folder(own: Path) -> None:
    before = (own / "listener.key").read_bytes()
    with pytest.raises(BadAddress, match=f"{own} exists already: name a new folder"):
        make_keys(own, 1)
    assert (own / "listener.key").read_bytes() == before


@pytest.mark.parametrize("name", FILES)
def test_a_missing_file_is_named(name: str, own: Path) -> None:
    (own / name).unlink()
    with pytest.raises(BadAddress, match=rf"{own / name} is missing: make keys with: exchange keys DIR"):
        Keys.checked(own)


@pytest.mark.parametrize("name", SECRETS)
@pytest.mark.parametrize("mode", [0o604, 0o640])
def test_a_secret_that_others_may_read_is_refused(name: str, mode: int, own: Path) -> None:
    (own / name).chmod(mode)
    with pytest.raises(BadAddress, match=rf"others may read {own / name}: make new keys, or type chmod 600"):
        Keys.checked(own)


def test_expired_keys_are_refused(own: Path) -> None:
    expiry_s = Keys.checked(own).expiry_s
    assert Keys.checked(own, now_s=expiry_s - 1)
    with pytest.raises(BadAddress, match=rf"the keys in {own} expired on \d{{4}}-\d\d-\d\d: make keys"):
        Keys.checked(own, now_s=expiry_s)


@pytest.mark.parametrize("end", [LISTENER, CONNECTOR])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_certificate_that_has_expired_before_its_authority_is_refused(
    end: str, scheme: str, own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ZeroMQ's CURVE does not look at certificates, so the keys are checked before."""
    yesterday = make_keys_with_an_expired_certificate(end, own.with_name("yesterday"), monkeypatch)
    with pytest.raises(BadAddress, match=rf"{yesterday / f'{end}.pem'} has expired: make keys"):
        listen(f"{scheme}://127.0.0.1:0?keys={yesterday}", TOKEN)


def make_keys_with_an_expired_certificate(end: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make keys whose authority is valid; the certificate of one end expired yesterday. Returns their folder."""
    call_openssl = keys_module._openssl
    scratch = folder.with_name("scratch")

    def call_with_other_days(*words: object) -> None:
        changed_words = list(words)
        is_for_end = scratch / "keys" / f"{end}.pem" in words
        if is_for_end and "-days" in words:
            changed_words[words.index("-days") + 1] = "-1"
        call_openssl(*changed_words)

    monkeypatch.setattr(keys_module, "_openssl", call_with_other_days)
    scratch.mkdir()
    keys_module._make_in(scratch, 1)
    (scratch / "keys").rename(folder)
    return folder


@pytest.mark.parametrize("name", ["ca.pem", "connector.pem", "listener.key", "listener.curve"])
def test_a_pipe_in_a_key_s_place_is_refused(name: str, own: Path) -> None:
    """Reading a pipe could wait for ever."""
    (own / name).unlink()
    os.mkfifo(own / name, 0o600)
    with pytest.raises(BadAddress, match=f"cannot read {own / name}: it is no regular file"):
        Keys.checked(own)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("name", FILES)
def test_a_file_without_a_key_is_named_by_every_transport(scheme: str, name: str, own: Path) -> None:
    (own / name).write_text("no key\n")
    with pytest.raises(BadAddress, match=rf"{own / name} (cannot be used|holds no pair)"):
        listen(f"{scheme}://127.0.0.1:0?keys={own}", TOKEN)


def test_a_wrong_ca_certificate_or_curve_key_is_refused(keys: Path, own: Path) -> None:
    shutil.copy(own / "listener.pem", own / "ca.pem")
    with pytest.raises(BadAddress, match=rf"{own / 'ca.pem'} is no certificate of an authority: make keys"):
        Keys.checked(own)
    shutil.copy(keys / "ca.pem", own / "ca.pem")
    (own / "listener.curve").write_text(f"{40 * '~'}\n{40 * '~'}\n")
    with pytest.raises(BadAddress, match=rf"{own / 'listener.curve'} holds no pair"):
        Keys.checked(own)


def test_a_folder_s_name_may_have_any_characters(keys: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(keys, tmp_path / "a b&c=d#e%41+f?\udcff")
    with joined(with_keys("tcp://127.0.0.1:0", str(folder))):
        pass


@contextlib.contextmanager
def overheard(url: str) -> Iterator[tuple[str, bytearray]]:
    """Yield the address of a relay to this listener, and all bytes that pass through the relay."""
    scheme, _, place = url.partition("://")
    place, _, options = place.partition("?")
    host, port = place.split(":")
    passed = bytearray()

    def relay_one_way(source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                passed.extend(data)
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)

    def relay(server: socket.socket) -> None:
        connector, _ = server.accept()
        with connector, socket.create_connection((host, int(port))) as listener:
            backward = Thread(target=relay_one_way, args=(listener, connector))
            backward.start()
            relay_one_way(connector, listener)
            backward.join()

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = Thread(target=relay, args=(server,))
        thread.start()
        _, relay_port = server.getsockname()
        yield f"{scheme}://127.0.0.1:{relay_port}?{options}", passed
        thread.join()


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("is_secure", [True, False])
def test_with_keys_nobody_between_can_read_frames_or_token(is_secure: bool, scheme: str, keys: Path) -> None:
    order = b"an order of 100 at 512"
    token = "a secret token"
    options = f"keys={keys}" if is_secure else ""
    listener = listen(f"{scheme}://127.0.0.1:0?{options}", token)
    with overheard(listener.url) as (url, passed), closing(listener):
        connector = connect(url, token, deadline_ns())
        greet(connector, listener)
        assert list(carry(connector, listener, FrameBatch.of(order))) == [order]
        connector.close()
    is_order_readable = order in passed
    is_token_readable = token.encode() in passed
    assert is_order_readable is not is_secure
    assert is_token_readable is not is_secure


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("stranger_keys", ["none", "others", "a listener's for a connector"])
def test_a_stranger_without_the_right_key_is_refused_and_counted(
    stranger_keys: str, scheme: str, keys: Path, own: Path, tmp_path: Path
) -> None:
    options = f"?keys={own}"
    if stranger_keys == "none":
        options = ""
    elif stranger_keys == "others":
        options = f"?keys={make_keys(tmp_path / 'others', 1).folder}"
    else:
        for kind in ("pem", "key", "curve"):
            shutil.copy(own / f"listener.{kind}", own / f"connector.{kind}")
    with closing(listen(f"{scheme}://127.0.0.1:0?keys={keys}", TOKEN)) as listener:
        address = listener.url.partition("?")[0]
        stranger = connect(address + options, TOKEN, deadline_ns())
        with contextlib.suppress(PeerGone):
            stranger.send(FrameBatch.of(b"an order"), 0)

        def is_refused() -> bool:
            return listener.refused > 0 or let_go_on(stranger)

        serve_links_until(is_refused, listener)
        stranger.close(0)
        serve_links_until(lambda: listener.refused > 0, listener)
        with closing(connect_while_serving(listener)) as connector:
            greet(connector, listener)
            assert listener.receive(FrameBatch()) == 0, "no frame of the stranger"


def let_go_on(stranger: Link) -> bool:
    """Let the stranger go on with its handshake. Returns whether it has noticed that it is refused."""
    with contextlib.suppress(PeerGone):
        stranger.receive(FrameBatch())
        stranger.wait(0)
        return False
    return True


def test_a_connector_is_told_that_the_listener_has_other_keys(keys: Path, tmp_path: Path) -> None:
    others = make_keys(tmp_path / "others", 1).folder
    listener = listen(f"tcp://127.0.0.1:0?keys={keys}", TOKEN)
    url = f"{listener.url.partition('?')[0]}?keys={others}"
    with closing(listener), closing(connect(url, TOKEN, deadline_ns())) as connector:

        def receive() -> bool:
            """Receive once. Returns False, so that the links are served until PeerGone."""
            connector.receive(FrameBatch())
            return False

        with pytest.raises(PeerGone, match=r"CERTIFICATE_VERIFY_FAILED.*: has it the same keys\?"):
            serve_links_until(receive, listener, connector)


def test_a_zeromq_peer_with_the_token_but_without_keys_is_refused(keys: Path) -> None:
    listener = listen(f"zeromq://127.0.0.1:0?keys={keys}", TOKEN)
    with closing(listener), zmq.Context() as context, context.socket(zmq.PAIR) as stranger:
        stranger.linger = 0
        stranger.plain_username = b"exchange"
        stranger.plain_password = TOKEN.encode()
        stranger.connect(listener.url.partition("?")[0].replace("zeromq", "tcp"))
        serve_links_until(lambda: listener.refused > 0, listener)


def test_all_frames_in_openssl_s_buffer_are_received_in_one_turn(keys: Path) -> None:
    """The socket's descriptor does not show bytes that OpenSSL has already read, so a turn has to take them all."""
    with joined(f"tcp://127.0.0.1:0?keys={keys}") as (listener, connector):
        frames = FrameBatch.of(*[struct.pack("<I", number) for number in range(1000)])
        received = FrameBatch()
        assert connector.send(frames, 0) == 1000

        def have_all_come() -> bool:
            listener.receive(received)
            return received.count == 1000

        serve_links_until(have_all_come, connector)
        assert list(received) == list(frames)


@pytest.fixture(scope="module")
def broker(keys: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    need_rabbitmq()
    folder = tmp_path_factory.mktemp("secure") / "node"
    with RabbitMq().start(folder, process_group=None, nodelay=True, where=ServerPlace(keys=keys)) as running:
        yield running


@pytest.fixture
def port(broker: RunningBroker, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setenv(PASSWORD, broker.environment[PASSWORD])
    port = urlsplit(broker.url).port
    assert port is not None
    return port


def test_frames_go_through_a_private_node_that_asks_for_a_certificate(
    broker: RunningBroker, port: int, keys: Path, tmp_path: Path
) -> None:
    assert isinstance(broker.server, PrivateRabbitMq)
    assert broker.url == f"{broker.server.node.url}/%2F"
    assert broker.url == f"amqps://exchange@127.0.0.1:{port}/%2F"
    with joined(f"{broker.url}?keys={keys}") as (listener, connector):
        assert list(carry(connector, listener, FrameBatch.of(b"an order"))) == [b"an order"]
    without_certificate = ssl.create_default_context(cafile=str(keys / "ca.pem"))
    without_certificate.check_hostname = False
    assert greeting_of("127.0.0.1", port, 10, tls=Keys(keys).tls(CONNECTOR)) is not None
    assert greeting_of("127.0.0.1", port, 10, tls=without_certificate) is None, "a client without a certificate"
    assert greeting_of("127.0.0.1", port, 10) is None, "a client without TLS"
    others = make_keys(tmp_path / "others", 1).folder
    with pytest.raises(BadAddress, match=rf"no keys in common .*: give both those of {others}"):
        listen(f"{broker.url}?keys={others}", TOKEN)


def test_keys_without_tls_are_refused(keys: Path) -> None:
    with pytest.raises(BadAddress, match="keys are for TLS: say amqps"):
        listen(f"amqp://127.0.0.1:1?keys={keys}", TOKEN)
