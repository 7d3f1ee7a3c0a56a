"""The folder of a node: everything it reads and writes, readable for its owner only."""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from transports.rabbitmq import boot
from transports.rabbitmq.errors import RabbitMqError
from transports.rabbitmq.settings import NodeSettings

LAST_LINES = 12


@dataclass(frozen=True)
class NodeFolder:
    path: Path
    name: str
    password: str

    @classmethod
    def make(cls, path: Path, settings: NodeSettings, host: str, port: int, user: str, outlives_us: bool) -> NodeFolder:
        """A new one, with a new password. RabbitMqError where it cannot be made."""
        path = path.absolute()
        name, password = f"exchange-{secrets.token_hex(6)}@localhost", secrets.token_urlsafe(24)
        files = {
            "name": name,
            "password": password,
            "rabbitmq.config": settings.terms(host, port, user, password),
            "enabled_plugins": "[].\n",
            "inetrc": boot.LOOPBACK_NAMES,
            "home/.erlang": boot.startup(outlives_us),
        }
        try:
            for folder in (path, path / "home", path / "data", path / "log"):
                folder.mkdir(mode=0o700, parents=folder is path)
            for file, text in files.items():
                write_private(path / file, text)
        except OSError as error:
            raise RabbitMqError(f"cannot make RabbitMQ's folder {path}: {error.strerror}") from error
        return cls(path, name, password)

    @classmethod
    def left_at(cls, path: Path) -> NodeFolder:
        """What a node that has ended left, for another to go on with. RabbitMqError where it is gone."""
        try:
            return cls(path, (path / "name").read_text(), (path / "password").read_text())
        except OSError as error:
            raise RabbitMqError(f"cannot use RabbitMQ's folder {path}: {error.strerror}") from error

    @property
    def environment(self) -> dict[str, str]:
        return boot.environment(self.path, self.name)

    def open_output(self) -> BinaryIO:
        """For what the node says before it has a log; a node that is started again says it behind the first."""
        return _open_private(self.path / "log" / "output", os.O_APPEND)

    def last_lines(self) -> str:
        """The end of what the node said, in its log or before it had one."""
        for file in (self.path / "log" / "node.log", self.path / "log" / "output"):
            lines = file.read_text(errors="replace").splitlines() if file.exists() else []
            if said := [line for line in lines if line.strip()]:
                return "\n".join(said[-LAST_LINES:])
        return ""


def write_private(path: Path, text: str) -> None:
    with _open_private(path) as file:
        file.write(text.encode())


def _open_private(path: Path, how: int = os.O_EXCL) -> BinaryIO:
    """A new file that only its owner can read, from its first byte on; or one that was made so."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | how, 0o600), "wb")
