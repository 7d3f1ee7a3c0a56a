"""Tries which networks this machine can emulate, in a namespace that is thrown away."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from exchange_simulation.launching.errors import UserError, last_line
from exchange_simulation.launching.network.links import ENVIRONMENT
from exchange_simulation.launching.network.profile import Profile

AS_ROOT = ("unshare", "--net", "--")
AS_USER = ("unshare", "--user", "--map-current-user", "--keep-caps", "--net", "--")
"""Keeps the user's uid, and gives the programs that we start the capabilities over the namespace."""
_PACKET_SOCKET = [sys.executable, "-I", "-S", "-c", "import socket as s; s.socket(s.AF_PACKET, s.SOCK_RAW, 0)"]
_DELAY = ["tc", "qdisc", "add", "dev", "lo", "root", "netem", "delay", "1ms"]
_SYSCTLS = {
    "kernel/unprivileged_userns_clone": ("0", "1"),
    "kernel/apparmor_restrict_unprivileged_userns": ("1", "0"),
    "user/max_user_namespaces": ("0", "10000"),
    "user/max_net_namespaces": ("0", "10000"),
}
"""(value that refuses namespaces, value that allows them)"""


@dataclass(frozen=True)
class ProbeFinding:
    """The result of one try: `reason` is empty if it worked, else the message of the failure; `remedy` may help."""

    name: str
    reason: str = ""
    remedy: str = ""

    @property
    def works(self) -> bool:
        return not self.reason

    def __str__(self) -> str:
        if not self.remedy:
            return f"{self.name}: {self.reason}"
        return f"{self.name}: {self.reason.rstrip('.')}; try: {self.remedy}"


@dataclass(frozen=True)
class Machine:
    """The way into a network namespace on this machine, and the results of all tries."""

    enter: tuple[str, ...]
    """Words before a command that runs it in a network namespace of its own."""
    findings: dict[str, ProbeFinding]

    def mechanism(self, profile: Profile) -> str:
        """The mechanism of a profile's network here: loopback, veth, netem or wire. UserError names what is lacking."""
        if profile.is_local:
            return "loopback"
        lacking = self._lacking("tools", "namespace", "veth", "bridge")
        if lacking:
            raise UserError(f"network {profile.name} cannot be had here: {lacking[0]}")
        if not profile.is_shaped:
            return "veth"
        if self.findings["netem"].works:
            return "netem"
        if self.findings["packet socket"].works:
            return "wire"
        netem, wire = self._lacking("netem", "packet socket")
        raise UserError(f"network {profile.name} cannot be had here: {netem}, and {wire}")

    def _lacking(self, *names: str) -> list[ProbeFinding]:
        return [self.findings[name] for name in names if not self.findings[name].works]


@functools.cache
def probe() -> Machine:
    """Try half a dozen short commands, once in a process."""
    enter = _enter()
    findings = (
        _tools(),
        _try("namespace", enter, ["true"], _how_to_get_namespaces()),
        _try("veth", enter, _link("veth"), "sudo modprobe veth"),
        _try("bridge", enter, _link("bridge"), "sudo modprobe bridge"),
        _try("netem", enter, _DELAY, _netem_remedy()),
        _try("packet socket", enter, _PACKET_SOCKET, "a kernel with CONFIG_PACKET"),
    )
    return Machine(enter, {finding.name: finding for finding in findings})


def _enter() -> tuple[str, ...]:
    """The way into a new namespace. Root needs no user namespace, unless it lacks the rights, as in a container."""
    if os.geteuid() == 0 and _try("", AS_ROOT, ["true"], "").works:
        return AS_ROOT
    return AS_USER


def _tools() -> ProbeFinding:
    """Look for the programs that make a network."""
    packages = {"ip": "iproute2", "unshare": "util-linux", "nsenter": "util-linux"}
    missing = [tool for tool in packages if shutil.which(tool, path=ENVIRONMENT["PATH"]) is None]
    lacking = " ".join(sorted({packages[tool] for tool in missing}))
    reason = f"no {', '.join(missing)} on PATH" if missing else ""
    return ProbeFinding("tools", reason, f"sudo apt-get install {lacking}")


def _link(kind: str) -> list[str]:
    return ["ip", "link", "add", "probe", "type", kind]


def _try(name: str, enter: Sequence[str], command: list[str], remedy: str) -> ProbeFinding:
    """Run a command in a new namespace, and return whether it worked."""
    try:
        done = subprocess.run(
            [*enter, *command], capture_output=True, text=True, timeout=10, env=ENVIRONMENT, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return ProbeFinding(name, str(error), remedy)
    reason = last_line(done.stderr, f"exit code {done.returncode}") if done.returncode else ""
    return ProbeFinding(name, reason, remedy)


def _how_to_get_namespaces() -> str:
    """The command for a known switch that is off, else other advice."""
    for name, (refusing, allowing) in _SYSCTLS.items():
        path = Path("/proc/sys", name)
        if path.is_file() and path.read_text().strip() == refusing:
            return f"sudo sysctl {name.replace('/', '.')}={allowing}"
    return "root, or in a container its options --cap-add SYS_ADMIN --cap-add NET_ADMIN"


def _netem_remedy() -> str:
    if shutil.which("tc", path=ENVIRONMENT["PATH"]) is None:
        return "sudo apt-get install iproute2"
    return "sudo modprobe sch_netem (Ubuntu: after apt-get install linux-modules-extra-$(uname -r))"
