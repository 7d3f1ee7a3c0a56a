"""Keys: what may be in the folder, who gets in with them, and that nobody reads along."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import ssl
import struct
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from threading import Thread

import pytest
import zmq

from exchange_simulation.launching.transport_settings import with_keys
from tests.broker import need_rabbitmq
from tests.transports.conftest import TOKEN, carry, connect_while_serving, deadline_ns, greet, joined, until
from transports import keys as keys_module
from transports.amqp.address import PASSWORD
from transports.amqp.broker import PrivateRabbitMq, RabbitMq
from transports.base import BadAddress, PeerGone
from transports.declaration import RunningBroker, Where
from transports.frames import FrameBatch
from transports.keys import CONNECTOR, FILES, LISTENER, SECRETS, Keys, make_keys
from transports.rabbitmq.node import greeting_of
from transports.registry import connect, listen

pytestmark = pytest.mark.xdist_group("keys")

SCHEMES = ("tcp", "zeromq")


@pytest.fixture
def own(keys: Path, tmp_path: Path) -> Path:
    """A copy that a test may damage."""
    return Path(shutil.copytree(keys, tmp_path / "own"))


def test_made_keys_are_for_their_owner_alone_and_the_ca_s_key_is_gone(keys: Path) -> None:
    assert keys.stat().st_mode & 0o777 == 0o700
    assert {path.name: path.stat().st_mode & 0o777 for path in keys.iterdir()} == dict.fromkeys(FILES, 0o600)
    assert [path.name for path in keys.parent.iterdir()] == [keys.name], "nothing is left beside them"


def test_a_folder_that_exists_is_not_written_into(own: Path) -> None:
    before = (own / "listener.key").read_bytes()
    with pytest.raises(BadAddress, match=f"{own} exists already: name a new folder"):
        make_keys(own, 1)
    assert (own / "listener.key").read_bytes() == before


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_is_missing_is_named(name: str, own: Path) -> None:
    (own / name).unlink()
    with pytest.raises(BadAddress, match=rf"{own / name} is missing: make keys with: exchange keys DIR"):
        Keys.checked(own)


@pytest.mark.parametrize("name", SECRETS)
@pytest.mark.parametrize("mode", [0o604, 0o640])
def test_a_secret_that_others_may_read_is_refused(name: str, mode: int, own: Path) -> None:
    (own / name).chmod(mode)
    with pytest.raises(BadAddress, match=rf"others may read {own / name}: make new keys, or type chmod 600"):
        Keys.checked(own)


def test_keys_that_have_expired_are_refused(own: Path) -> None:
    expiry_s = Keys.checked(own).expiry_s
    assert Keys.checked(own, now_s=expiry_s - 1)
    with pytest.raises(BadAddress, match=rf"the keys in {own} expired on \d{{4}}-\d\d-\d\d: make keys"):
        Keys.checked(own, now_s=expiry_s)


@pytest.mark.parametrize("end", [LISTENER, CONNECTOR])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_certificate_that_has_expired_before_its_authority_is_refused(
    end: str, scheme: str, own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CURVE never looks at certificates, so the keys were taken over zeromq."""
    yesterday = make_keys_with_an_expired_certificate(end, own.with_name("yesterday"), monkeypatch)
    with pytest.raises(BadAddress, match=rf"{yesterday / f'{end}.pem'} has expired: make keys"):
        listen(f"{scheme}://127.0.0.1:0?keys={yesterday}", TOKEN)


def make_keys_with_an_expired_certificate(end: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make keys whose authority is valid; the certificate of one end expired yesterday. Returns their folder."""
    call_openssl = keys_module._openssl
    scratch = folder.with_name("scratch")

    def call_with_other_days(*words: object) -> None:
        call_openssl(*("-1" if is_for_end(words, index) else word for index, word in enumerate(words)))

    def is_for_end(words: tuple[object, ...], index: int) -> bool:
        return scratch / "keys" / f"{end}.pem" in words and words[index - 1] == "-days"

    monkeypatch.setattr(keys_module, "_openssl", call_with_other_days)
    scratch.mkdir()
    keys_module._make_in(scratch, 1)
    (scratch / "keys").rename(folder)
    return folder


@pytest.mark.parametrize("name", ["ca.pem", "connector.pem", "listener.key", "listener.curve"])
def test_a_pipe_in_a_key_s_place_is_refused(name: str, own: Path) -> None:
    """It was waited for, for ever."""
    (own / name).unlink()
    os.mkfifo(own / name, 0o600)
    with pytest.raises(BadAddress, match=f"cannot read {own / name}: it is no regular file"):
        Keys.checked(own)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("name", FILES)
def test_a_file_without_a_key_is_named_by_every_transport_and_end(scheme: str, name: str, own: Path) -> None:
    (own / name).write_text("no key\n")
    with pytest.raises(BadAddress, match=rf"{own / name} (cannot be used|holds no pair)"):
        listen(f"{scheme}://127.0.0.1:0?keys={own}", TOKEN)


def test_a_ca_without_a_signature_and_a_bad_curve_key_are_no_keys(keys: Path, own: Path) -> None:
    shutil.copy(own / "listener.pem", own / "ca.pem")
    with pytest.raises(BadAddress, match=rf"{own / 'ca.pem'} is no certificate of an authority: make keys"):
        Keys.checked(own)
    shutil.copy(keys / "ca.pem", own / "ca.pem")
    (own / "listener.curve").write_text(f"{40 * '~'}\n{40 * '~'}\n")
    with pytest.raises(BadAddress, match=rf"{own / 'listener.curve'} holds no pair"):
        Keys.checked(own)


def test_a_folder_s_name_may_hold_anything(keys: Path, tmp_path: Path) -> None:
    odd = shutil.copytree(keys, tmp_path / "a b&c=d#e%41+f?\udcff")
    with joined(with_keys("tcp://127.0.0.1:0", str(odd))):
        pass


@contextlib.contextmanager
def overheard(url: str) -> Iterator[tuple[str, bytearray]]:
    """(the address of somebody between who hands everything on, all that went by)."""
    scheme, _, place = url.partition("://")
    place, _, options = place.partition("?")
    heard, (host, port) = bytearray(), place.split(":")
    with socket.create_server(("127.0.0.1", 0)) as between:

        def hand_on(source: socket.socket, target: socket.socket) -> None:
            with contextlib.suppress(OSError):
                while data := source.recv(1 << 16):
                    heard.extend(data)
                    target.sendall(data)
                target.shutdown(socket.SHUT_WR)

        def serve() -> None:
            with between.accept()[0] as ours, socket.create_connection((host, int(port))) as theirs:
                back = Thread(target=hand_on, args=(theirs, ours))
                back.start()
                hand_on(ours, theirs)
                back.join()

        thread = Thread(target=serve)
        thread.start()
        yield f"{scheme}://127.0.0.1:{between.getsockname()[1]}?{options}", heard
        thread.join()


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("is_secure", [True, False])
def test_nobody_between_reads_frames_or_token(is_secure: bool, scheme: str, keys: Path) -> None:
    order, token = b"an order of 100 at 512", "a secret token"
    listener = listen(f"{scheme}://127.0.0.1:0?" + f"keys={keys}" * is_secure, token)
    with overheard(listener.url) as (url, heard), closing(listener):
        connector = connect(url, token, deadline_ns())
        greet(connector, listener)
        assert list(carry(connector, listener, FrameBatch.of(order))) == [order]
        connector.close()
    assert (order in heard, token.encode() in heard) == (not is_secure, not is_secure)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("theirs", ["none", "others", "a listener's for a connector"])
def test_who_lacks_the_key_is_refused_and_counted_and_the_peer_gets_in(
    theirs: str, scheme: str, keys: Path, own: Path, tmp_path: Path
) -> None:
    if theirs == "others":
        own = make_keys(tmp_path / "others", 1).folder
    elif theirs != "none":
        for kind in ("pem", "key", "curve"):
            shutil.copy(own / f"listener.{kind}", own / f"connector.{kind}")
    with closing(listen(f"{scheme}://127.0.0.1:0?keys={keys}", TOKEN)) as listener:
        place, got = listener.url.partition("?")[0], FrameBatch()
        stranger = connect(place if theirs == "none" else f"{place}?keys={own}", TOKEN, deadline_ns())
        with contextlib.suppress(PeerGone):
            stranger.send(FrameBatch.of(b"an order"), 0)
        until(lambda: listener.refused > 0 or refused_at(stranger), listener)
        stranger.close(0)
        until(lambda: listener.refused > 0, listener)
        with closing(connect_while_serving(listener)) as connector:
            greet(connector, listener)
            assert listener.receive(got) == 0


def refused_at(stranger: object) -> bool:
    """Whether it knows; it moves its own handshake on."""
    with contextlib.suppress(PeerGone):
        stranger.receive(FrameBatch())  # type: ignore[attr-defined]
        stranger.wait(0)  # type: ignore[attr-defined]
        return False
    return True


def test_a_connector_is_told_that_the_listener_has_other_keys(keys: Path, tmp_path: Path) -> None:
    others = make_keys(tmp_path / "others", 1).folder
    listener = listen(f"tcp://127.0.0.1:0?keys={keys}", TOKEN)
    url = f"{listener.url.partition('?')[0]}?keys={others}"
    said = pytest.raises(PeerGone, match=r"CERTIFICATE_VERIFY_FAILED.*: has it the same keys\?")
    with closing(listener), closing(connect(url, TOKEN, deadline_ns())) as connector, said:
        until(lambda: connector.receive(FrameBatch()) < 0, listener, connector)


def test_a_zeromq_peer_with_the_token_alone_is_none(keys: Path) -> None:
    listener = listen(f"zeromq://127.0.0.1:0?keys={keys}", TOKEN)
    with closing(listener), zmq.Context() as context, context.socket(zmq.PAIR) as stranger:
        stranger.linger, stranger.plain_username, stranger.plain_password = 0, b"exchange", TOKEN.encode()
        stranger.connect(listener.url.partition("?")[0].replace("zeromq", "tcp"))
        until(lambda: listener.refused > 0, listener)


def test_a_thousand_frames_that_come_together_are_taken_together(keys: Path) -> None:
    """TLS gives a record at a time; what it keeps shows at no descriptor, so a turn takes all of it."""
    with joined(f"tcp://127.0.0.1:0?keys={keys}") as (listener, connector):
        frames, got = FrameBatch.of(*[struct.pack("<I", number) for number in range(1000)]), FrameBatch()
        assert connector.send(frames, 0) == 1000
        until(lambda: listener.receive(got) >= 0 and got.count == 1000, connector)
        assert list(got) == list(frames)


@pytest.fixture(scope="module")
def broker(keys: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    need_rabbitmq()
    with RabbitMq().start(tmp_path_factory.mktemp("secure") / "node", None, True, Where(keys=keys)) as running:
        yield running


@pytest.fixture
def port(broker: RunningBroker, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setenv(PASSWORD, broker.environment[PASSWORD])
    return int(broker.url.rpartition("/")[0].rpartition(":")[2])


def test_frames_go_through_a_private_node_that_asks_for_a_certificate(
    broker: RunningBroker, port: int, keys: Path, tmp_path: Path
) -> None:
    assert isinstance(broker.server, PrivateRabbitMq)
    assert broker.url == f"{broker.server.node.url}/%2F" == f"amqps://exchange@127.0.0.1:{port}/%2F"
    with joined(f"{broker.url}?keys={keys}") as (listener, connector):
        assert list(carry(connector, listener, FrameBatch.of(b"an order"))) == [b"an order"]
    nameless = ssl.create_default_context(cafile=str(keys / "ca.pem"))
    nameless.check_hostname = False
    assert greeting_of("127.0.0.1", port, 10, tls=Keys(keys).tls(CONNECTOR)) is not None
    assert greeting_of("127.0.0.1", port, 10, tls=nameless) is None, "a client without a certificate"
    assert greeting_of("127.0.0.1", port, 10) is None, "a client without TLS"
    others = make_keys(tmp_path / "others", 1).folder
    with pytest.raises(BadAddress, match=rf"no keys in common .*: give both those of {others}"):
        listen(f"{broker.url}?keys={others}", TOKEN)


def test_keys_without_tls_are_refused(keys: Path) -> None:
    with pytest.raises(BadAddress, match="keys are for TLS: say amqps"):
        listen(f"amqp://127.0.0.1:1?keys={keys}", TOKEN)
