"""Links over shared memory: what is left of a killed process, and which newcomers a listener lets in."""

from __future__ import annotations

import errno
import fcntl
import os
import resource
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.transports.conftest import (
    TOKEN,
    carry,
    connect_while_serving,
    deadline_ns,
    greet,
    joined,
    serve_links_until,
)
from transports.base import Address, BadAddress, CannotListen, Pattern, PeerGone, TransportError
from transports.frames import FrameBatch
from transports.registry import connect, listen
from transports.shm import link as shm_link
from transports.shm import segment

SEND_AND_WAIT = """
import sys, time
from transports.frames import FrameBatch
from transports.registry import connect
link = connect(sys.argv[1], "a-run", time.monotonic_ns() + 10**10)
link.send(FrameBatch.of(b"first", b"last"), 0)
print("sent", flush=True)
time.sleep(60)
"""
LISTEN_AND_WAIT = """
import sys, time
from transports.registry import listen
link = listen(sys.argv[1], "a-run")
print("listens", flush=True)
time.sleep(60)
"""


def started(program: str, url: str) -> subprocess.Popen[bytes]:
    """A process that runs the program, once it has printed a line."""
    process = subprocess.Popen([sys.executable, "-c", program, url], stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline()
    return process


def kill(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGKILL)
    process.communicate()


def test_a_killed_peer_is_noticed_behind_its_last_frame(tmp_path: Path) -> None:
    listener = listen(f"shm://{tmp_path}/link", TOKEN)
    kill(started(SEND_AND_WAIT, listener.url))
    batch = FrameBatch()
    with pytest.raises(PeerGone, match="closed its end"):
        serve_links_until(lambda: listener.receive(batch) > 2, listener)
    assert list(batch) == [b"first", b"last"]
    listener.close()
    assert list(tmp_path.iterdir()) == []


def test_shared_memory_has_no_name_that_a_kill_could_leave(tmp_path: Path) -> None:
    before = set(os.listdir("/dev/shm"))
    with joined(f"shm://{tmp_path}/link"):
        assert set(os.listdir("/dev/shm")) <= before


def test_the_socket_of_a_killed_listener_is_replaced(tmp_path: Path) -> None:
    url = f"shm://{tmp_path}/link"
    kill(started(LISTEN_AND_WAIT, url))
    assert [path.name for path in tmp_path.iterdir()] == ["link"]
    with joined(url) as (listener, connector):
        greet(connector, listener)


def test_only_the_owner_may_use_the_socket(tmp_path: Path) -> None:
    with joined(f"shm://{tmp_path}/link"):
        assert (tmp_path / "link").stat().st_mode & 0o777 == 0o600


def test_a_file_that_is_no_socket_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(CannotListen, match="choose another path"):
        listen(f"shm://{tmp_path}/file", TOKEN)
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.parametrize("place", ["otherhost/tmp/link", "127.0.0.1:7000", "link", ""])
def test_a_place_of_another_host_is_refused_with_what_to_do(place: str) -> None:
    with pytest.raises(BadAddress, match=r"joins processes of one host.*between hosts use zeromq or tcp"):
        listen(f"shm://{place}", TOKEN)


def test_a_path_that_no_socket_takes_is_refused() -> None:
    with pytest.raises(BadAddress, match="over 107 bytes"):
        connect(f"shm:///{'long' * 30}", TOKEN, 0)


def no_descriptor() -> list[int]:
    return []


def unsealed() -> list[int]:
    """A segment that the newcomer could shrink under the listener's hands."""
    descriptor = os.memfd_create("unsealed", os.MFD_ALLOW_SEALING)
    os.truncate(descriptor, segment.SEGMENT_BYTES)
    return [descriptor]


def too_small() -> list[int]:
    descriptor = os.memfd_create("small", os.MFD_ALLOW_SEALING)
    os.truncate(descriptor, 4096)
    fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW)
    return [descriptor]


def read_only() -> list[int]:
    """A segment that nobody can map for writing."""
    descriptor = os.memfd_create("read-only", os.MFD_ALLOW_SEALING)
    os.truncate(descriptor, segment.SEGMENT_BYTES)
    fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE)
    return [descriptor]


def no_memory_file() -> list[int]:
    return [os.open("/dev/null", os.O_RDWR)]


@pytest.mark.parametrize("made", [no_descriptor, unsealed, too_small, read_only, no_memory_file])
def test_a_newcomer_without_a_sealed_segment_is_refused(made: Callable[[], list[int]], tmp_path: Path) -> None:
    with joined(f"shm://{tmp_path}/link", pattern=Pattern.FAN_IN) as (listener, connector):
        descriptors = made()
        with socket.socket(socket.AF_UNIX) as stranger:
            stranger.connect(str(tmp_path / "link"))
            preamble = shm_link._preamble(Address.parse(listener.url, TOKEN))
            socket.send_fds(stranger, [preamble], descriptors)
            serve_links_until(lambda: listener.refused == 1, listener)
            greet(connector, listener)
        for descriptor in descriptors:
            os.close(descriptor)


def test_descriptors_of_refused_strangers_are_closed(tmp_path: Path) -> None:
    with joined(f"shm://{tmp_path}/link") as (listener, connector):
        before = len(os.listdir("/proc/self/fd"))
        preamble = shm_link._preamble(Address.parse(listener.url, "another-run"))
        descriptor = segment.create()
        with socket.socket(socket.AF_UNIX) as stranger:
            stranger.connect(str(tmp_path / "link"))
            socket.send_fds(stranger, [preamble], [descriptor])
            serve_links_until(lambda: listener.refused == 1 and stranger_is_closed(stranger), listener)
        os.close(descriptor)
        assert len(os.listdir("/proc/self/fd")) == before
        greet(connector, listener)


def stranger_is_closed(stranger: socket.socket) -> bool:
    """True once the listener has closed the stranger's connection."""
    stranger.setblocking(False)
    try:
        return stranger.recv(1) == b""
    except BlockingIOError:
        return False
    except ConnectionResetError:
        return True


def test_a_peer_that_writes_nonsense_is_given_up_with_a_sentence(tmp_path: Path) -> None:
    with joined(f"shm://{tmp_path}/link") as (listener, connector):
        peer = connector._peers[0]  # type: ignore[attr-defined]
        peer.memory[segment.CONNECTORS_RING.control + segment.TAIL + 6] = 1
        with pytest.raises(PeerGone, match="wrote into the shared memory what no peer of ours writes"):
            serve_links_until(lambda: listener.receive(FrameBatch()) > 0, listener)


def test_a_broken_peer_of_a_fan_in_is_dropped_and_counted_and_the_others_stay(tmp_path: Path) -> None:
    batch = FrameBatch()
    with joined(f"shm://{tmp_path}/link", pattern=Pattern.FAN_IN) as (listener, connector):
        broken = connect_while_serving(listener, pattern=Pattern.FAN_IN)
        memory = broken._peers[0].memory  # type: ignore[attr-defined]
        memory[segment.CONNECTORS_RING.control + segment.TAIL + 6] = 1
        serve_links_until(lambda: listener.receive(batch) == 0 and listener.junk == 1, listener)
        assert list(carry(connector, listener, FrameBatch.of(b"whole"))) == [b"whole"]
        assert listener.junk == 1
        broken.close()


def test_a_system_without_memory_for_a_segment_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOMEM, "Cannot allocate memory")

    monkeypatch.setattr(segment.mmap, "mmap", refuse)
    for open_link in (lambda url: listen(url, TOKEN), lambda url: connect(url, TOKEN, deadline_ns())):
        with pytest.raises(TransportError, match=r"the system refuses it \(Cannot allocate memory\)"):
            open_link(f"shm://{tmp_path}/link")
    assert list(tmp_path.iterdir()) == []


def test_a_process_without_descriptors_left_is_one_sentence(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
    try:
        with pytest.raises(TransportError, match=r"the system refuses it \(Too many open files\)"):
            connect(f"shm://{tmp_path}/link", TOKEN, deadline_ns())
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_nobody_who_listens_is_waited_for_until_the_deadline(tmp_path: Path) -> None:
    with pytest.raises(PeerGone, match="nobody listens on shm://"):
        connect(f"shm://{tmp_path}/nobody", TOKEN, deadline_ns(0.05))
