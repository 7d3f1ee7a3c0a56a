"""A real sshd on loopback, with keys of its own, and the words that reach it as a host."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from tests.machine import lacks, until

SSHD = shutil.which("sshd", path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin")


@dataclass(frozen=True)
class SshServer:
    """An sshd under way."""

    command_prefix: str
    """The words before a command that run it through this sshd."""
    process: subprocess.Popen[bytes]

    def sessions(self) -> list[psutil.Process]:
        """The processes of the sessions, and all that they started."""
        return psutil.Process(self.process.pid).children(recursive=True)

    def cut_connections(self) -> None:
        """Kill the processes of sshd that serve connections, as where the host is lost."""
        for session in self.sessions():
            if session.is_running() and "sshd" in session.name():
                session.kill()


@contextmanager
def ssh_server(folder: Path) -> Iterator[SshServer]:
    """Start an sshd for this user; the test is skipped without sshd."""
    if SSHD is None or shutil.which("ssh") is None:
        lacks("sshd")
    Path("/run/sshd").mkdir(exist_ok=True)  # sshd of Debian insists on it
    for name in ("host_key", "user_key"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name], check=True)
    shutil.copy(folder / "user_key.pub", folder / "authorized_keys")
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        port = holder.getsockname()[1]
    lines = [
        f"ListenAddress 127.0.0.1:{port}",
        f"HostKey {folder / 'host_key'}",
        f"AuthorizedKeysFile {folder / 'authorized_keys'}",
        "PidFile none",
        "StrictModes no",
        "UsePAM no",
        "PasswordAuthentication no",
        "PermitRootLogin prohibit-password",
    ]
    (folder / "sshd_config").write_text("\n".join(lines) + "\n")
    client = [
        "Host engine1",
        "HostName 127.0.0.1",
        f"Port {port}",
        f"IdentityFile {folder / 'user_key'}",
        "IdentitiesOnly yes",
        "BatchMode yes",
        "StrictHostKeyChecking no",
        "UserKnownHostsFile /dev/null",
        "LogLevel ERROR",
    ]
    (folder / "ssh_config").write_text("\n".join(client) + "\n")
    with (folder / "sshd.log").open("wb") as log:
        process = subprocess.Popen([SSHD, "-D", "-e", "-f", folder / "sshd_config"], stderr=log)
    command_prefix = f"ssh -F {folder / 'ssh_config'} engine1"
    try:
        until(lambda: _answers(command_prefix), f"sshd answers; its log: {folder / 'sshd.log'}")
        yield SshServer(command_prefix, process)
    finally:
        process.terminate()
        process.wait()


def _answers(command_prefix: str) -> bool:
    return subprocess.run([*command_prefix.split(), "true"], capture_output=True, check=False).returncode == 0
