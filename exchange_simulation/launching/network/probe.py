"""Tests which networks this machine can emulate, in a temporary namespace."""

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
"""This command keeps the user's uid, and gives the started programs the capabilities over the namespace."""
_PACKET_SOCKET = [sys.executable, "-I", "-S", "-c", "import socket as s; s.socket(s.AF_PACKET, s.SOCK_RAW, 0)"]
_DELAY = ["tc", "qdisc", "add", "dev", "lo", "root", "netem", "delay", "1ms"]


@dataclass(frozen=True)
class NamespaceSwitch:
    """A setting of the kernel that can forbid namespaces."""

    name: str
    refusing: str
    """The value that forbids namespaces."""
    allowing: str
    """The value that allows them."""


_SWITCHES = (
    NamespaceSwitch("kernel/unprivileged_userns_clone", refusing="0", allowing="1"),
    NamespaceSwitch("kernel/apparmor_restrict_unprivileged_userns", refusing="1", allowing="0"),
    NamespaceSwitch("user/max_user_namespaces", refusing="0", allowing="10000"),
    NamespaceSwitch("user/max_net_namespaces", refusing="0", allowing="10000"),
)


@dataclass(frozen=True)
class ProbeFinding:
    """The result of one test."""

    name: str
    reason: str = ""
    """The message of the failure; empty if the test succeeded."""
    remedy: str = ""
    """A command or advice that may help."""

    @property
    def works(self) -> bool:
        return not self.reason

    def __str__(self) -> str:
        if not self.remedy:
            return f"{self.name}: {self.reason}"
        return f"{self.name}: {self.reason.rstrip('.')}; try: {self.remedy}"


@dataclass(frozen=True)
class Machine:
    """The command that makes a network namespace on this machine, and the results of all tests."""

    enter: tuple[str, ...]
    """The words before a command that run it in a new network namespace."""
    findings: dict[str, ProbeFinding]

    def mechanism(self, profile: Profile) -> str:
        """Return the mechanism for a profile's network: loopback, veth, netem or wire.

        UserError names the first missing part if this machine cannot have the network.
        """
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
    """Run some short commands, and return their results. They are cached."""
    enter = _enter()
    findings = (
        _tools(),
        _try("namespace", enter, ["true"], _namespace_remedy()),
        _try("veth", enter, _link("veth"), "sudo modprobe veth"),
        _try("bridge", enter, _link("bridge"), "sudo modprobe bridge"),
        _try("netem", enter, _DELAY, _netem_remedy()),
        _try("packet socket", enter, _PACKET_SOCKET, "a kernel with CONFIG_PACKET"),
    )
    return Machine(enter, {finding.name: finding for finding in findings})


def _enter() -> tuple[str, ...]:
    """Return the command that makes a namespace. Root needs no user namespace, unless a container limits its rights."""
    if os.geteuid() == 0 and _try("", AS_ROOT, ["true"], "").works:
        return AS_ROOT
    return AS_USER


def _tools() -> ProbeFinding:
    """Look for the programs that make a network."""
    package_of_tool = {"ip": "iproute2", "unshare": "util-linux", "nsenter": "util-linux"}
    missing_tools = [tool for tool in package_of_tool if shutil.which(tool, path=ENVIRONMENT["PATH"]) is None]
    missing_packages = sorted({package_of_tool[tool] for tool in missing_tools})
    reason = f"no {', '.join(missing_tools)} on PATH" if missing_tools else ""
    return ProbeFinding("tools", reason, f"sudo apt-get install {' '.join(missing_packages)}")


def _link(kind: str) -> list[str]:
    return ["ip", "link", "add", "probe", "type", kind]


def _try(name: str, enter: Sequence[str], command: list[str], remedy: str) -> ProbeFinding:
    """Run a command in a new namespace, and return whether it worked.

    It has a process group of its own: Ctrl-C in a terminal would end it, and the machine would seem to lack something.
    """
    try:
        finished = subprocess.run(
            [*enter, *command],
            capture_output=True,
            text=True,
            timeout=10,
            env=ENVIRONMENT,
            process_group=0,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return ProbeFinding(name, str(error), remedy)
    reason = ""
    if finished.returncode:
        reason = last_line(finished.stderr, f"exit code {finished.returncode}")
    return ProbeFinding(name, reason, remedy)


def _namespace_remedy() -> str:
    """Return the command that changes a switch which forbids namespaces; other advice if no switch does."""
    for switch in _SWITCHES:
        path = Path("/proc/sys", switch.name)
        if path.is_file() and path.read_text().strip() == switch.refusing:
            return f"sudo sysctl {switch.name.replace('/', '.')}={switch.allowing}"
    return "root, or in a container its options --cap-add SYS_ADMIN --cap-add NET_ADMIN"


def _netem_remedy() -> str:
    if shutil.which("tc", path=ENVIRONMENT["PATH"]) is None:
        return "sudo apt-get install iproute2"
    return "sudo modprobe sch_netem (Ubuntu: after apt-get install linux-modules-extra-$(uname -r))"
