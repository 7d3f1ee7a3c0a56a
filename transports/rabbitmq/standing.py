"""The standing node: one per user, for several runs, in a folder of the user's state.

    FOLDER/state.json   0600: address, password, pid and when that process began; written once the node is ready
    FOLDER/node/        the node's own folder

Starting and stopping take a lock on FOLDER itself. The next command removes the files and processes that a
killed command or node has left.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import psutil

from transports.rabbitmq.boot import write_private
from transports.rabbitmq.node import Node
from transports.rabbitmq.process import NodeAddress, nodes_left_in
from transports.rabbitmq.settings import NodeSettings, RabbitMqError
from transports.servers.ending import end_process, is_alive

FOLDER_VARIABLE = "EXCHANGE_BROKER_DIR"
SAME_START_S = 2.0
"""Two readings of one process's start time differ by less than this, even if the clock was set in between."""


def standing_folder() -> Path:
    """EXCHANGE_BROKER_DIR, or a folder below XDG_STATE_HOME."""
    named = os.environ.get(FOLDER_VARIABLE)
    if named:
        return Path(named).absolute()
    return _state_home() / "exchange-simulation" / "broker"


def _state_home() -> Path:
    """XDG_STATE_HOME if it is an absolute path, as the XDG specification asks; else its default.

    RabbitMqError for a user without a home, for example a container's user id that is not in /etc/passwd.
    """
    given = os.environ.get("XDG_STATE_HOME", "")
    if given.startswith("/"):
        return Path(given)
    try:
        return Path.home() / ".local/state"
    except RuntimeError as error:
        raise RabbitMqError(
            f"this user has no home, which would hold the broker's folder: name a folder with {FOLDER_VARIABLE}"
        ) from error


def running_node() -> NodeAddress | None:
    """The standing node, if it is up."""
    try:
        state = json.loads((standing_folder() / "state.json").read_text())
        process = psutil.Process(state["address"]["pid"])
        is_same_process = abs(process.create_time() - state["began_s"]) < SAME_START_S
        if is_same_process and is_alive(process):
            return NodeAddress(**state["address"])
        return None
    except (OSError, ValueError, KeyError, TypeError, psutil.Error, RabbitMqError):
        return None


def start_standing_node(settings: NodeSettings | None = None) -> tuple[NodeAddress, bool]:
    """Start the node unless it runs; returns (the node, whether it was started). A dead node's files are removed."""
    with _locked(standing_folder()) as folder:
        running = running_node()
        if running is not None:
            return running, False
        _clear(folder)
        node = Node.start(folder / "node", settings, outlives_us=True)
        try:
            return _write_state(folder, node), True
        except BaseException:
            node.stop()
            raise


def reclaim() -> bool:
    """End the standing node and remove all its files. True if there was one."""
    was_up = running_node() is not None
    if standing_folder().exists():
        with _locked(standing_folder()) as folder:
            _clear(folder)
            with contextlib.suppress(OSError):
                folder.rmdir()
    return was_up


def _write_state(folder: Path, node: Node) -> NodeAddress:
    address = NodeAddress(
        host=node.host,
        port=node.port,
        user=node.user,
        password=node.password,
        vhost=node.vhost,
        pid=node.pid,
        about=node.about,
    )
    state = {"address": asdict(address), "began_s": psutil.Process(node.pid).create_time()}
    write_private(folder / "state.new", json.dumps(state))
    (folder / "state.new").rename(folder / "state.json")
    return address


def _clear(folder: Path) -> None:
    """Remove the state and the node's folder, and end the processes of a node that still run there."""
    for name in ("state.json", "state.new"):
        (folder / name).unlink(missing_ok=True)
    for node in nodes_left_in(folder / "node"):
        end_process(node)
    shutil.rmtree(folder / "node", ignore_errors=True)


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[Path]:
    """Hold the folder's lock inside the context, so that one command at a time changes the folder.

    RabbitMqError in place of an OSError, also of the caller's block: the block works on files of this folder only.
    """
    try:
        descriptor = _lock(folder)
        try:
            yield folder
        finally:
            os.close(descriptor)
    except OSError as error:
        raise RabbitMqError(f"cannot use {folder}: {error.strerror or error}") from error


def _lock(folder: Path) -> int:
    """Make the folder and lock it. Retry if another command replaced the folder while we waited for the lock.

    Returns a descriptor that holds the lock until it is closed.
    """
    import fcntl  # some systems on which components run have none

    while True:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            if _is_open_as(descriptor, folder):
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _is_open_as(descriptor: int, folder: Path) -> bool:
    """True if the path still names the folder that was opened."""
    with contextlib.suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(descriptor), folder.stat())
    return False
