"""A network needs no root if the kernel permits namespaces to users. As root, the test runs as the user `nobody`."""

from __future__ import annotations

import json
import os
import pwd
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[4]
SCRIPT = """
import json, subprocess
from exchange_simulation.launching.errors import UserError
from exchange_simulation.launching.network.network import Network
from exchange_simulation.launching.network.profile import parse
try:
    with Network.up(parse("wan1")) as net:
        command = [*net.prefix("engine"), "sh", "-c", "id -u; grep CapEff /proc/self/status"]
        ids_and_capabilities = subprocess.run(command,
                              capture_output=True, text=True).stdout
    print(json.dumps({"facts": net.facts, "ids_and_capabilities": ids_and_capabilities}))
except UserError as refusal:
    print(json.dumps({"refusal": refusal.message}))
"""


@pytest.fixture
def home() -> Iterator[Path]:
    """A folder that the user `nobody` owns."""
    if os.geteuid():
        pytest.skip("this user is not root, so all other tests of networks run as an ordinary user")
    nobody = pwd.getpwnam("nobody")
    with tempfile.TemporaryDirectory() as folder:
        os.chown(folder, nobody.pw_uid, nobody.pw_gid)
        yield Path(folder)


def as_nobody(home: Path, program: str, script: str) -> subprocess.CompletedProcess[str]:
    nobody = pwd.getpwnam("nobody")
    packages = f"{ROOT}:{sysconfig.get_path('purelib')}"
    environment = {
        **os.environ,
        "PYTHONPATH": packages,
        "NUMBA_CACHE_DIR": str(home),
        "NUMBA_OPT": "0",  # no optimization: the cache is empty, and this compiles in half the time
        "HOME": str(home),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    return subprocess.run(
        [program, "-c", script],
        user=nobody.pw_uid,
        group=nobody.pw_gid,
        extra_groups=[],
        env=environment,
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
    )


def program_for_nobody(home: Path) -> str:
    """A Python that the user `nobody` can run."""
    for program in (sys.executable, f"/usr/bin/python3.{sys.version_info.minor}"):
        try:
            if as_nobody(home, program, "import exchange_simulation.launching.network.network").returncode == 0:
                return program
        except (PermissionError, FileNotFoundError):
            continue
    pytest.skip("no Python that another user can run")


def test_an_ordinary_user_has_a_slow_network_without_capabilities(home: Path) -> None:
    finished = as_nobody(home, program_for_nobody(home), SCRIPT)
    report = json.loads(finished.stdout or "null")
    assert report, finished.stderr
    if "refusal" in report:
        pytest.skip(report["refusal"])
    assert report["facts"]["round_trip_us"]["gateway-engine"]["min"] >= 2_000
    uid, capabilities = report["ids_and_capabilities"].splitlines()
    assert int(uid) == pwd.getpwnam("nobody").pw_uid
    assert int(capabilities.split()[1], 16) == 0
