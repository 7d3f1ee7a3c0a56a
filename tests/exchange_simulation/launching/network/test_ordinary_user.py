"""A network needs no root, where the kernel lets users have namespaces. Tried as another user, if we are root."""

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
        said = subprocess.run([*net.prefix("engine"), "sh", "-c", "id -u; grep CapEff /proc/self/status"],
                              capture_output=True, text=True).stdout
    print(json.dumps({"facts": net.facts, "said": said}))
except UserError as refusal:
    print(json.dumps({"refusal": refusal.message}))
"""


@pytest.fixture
def home() -> Iterator[Path]:
    """A folder that is nobody's."""
    if os.geteuid():
        pytest.skip("we are an ordinary user: the other tests show it")
    nobody = pwd.getpwnam("nobody")
    with tempfile.TemporaryDirectory() as folder:
        os.chown(folder, nobody.pw_uid, nobody.pw_gid)
        yield Path(folder)


def as_nobody(home: Path, program: str, script: str) -> subprocess.CompletedProcess[str]:
    nobody = pwd.getpwnam("nobody")
    packages = f"{ROOT}:{sysconfig.get_path('purelib')}"
    more = {"PYTHONPATH": packages, "NUMBA_CACHE_DIR": str(home), "HOME": str(home), "PYTHONDONTWRITEBYTECODE": "1"}
    more["NUMBA_OPT"] = "0"  # from an empty cache: in half the time
    return subprocess.run(
        [program, "-c", script],
        user=nobody.pw_uid,
        group=nobody.pw_gid,
        extra_groups=[],
        env={**os.environ, **more},
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
    )


def program_for_nobody(home: Path) -> str:
    """A Python that is readable for everybody."""
    for program in (sys.executable, f"/usr/bin/python3.{sys.version_info.minor}"):
        try:
            if as_nobody(home, program, "import exchange_simulation.launching.network.network").returncode == 0:
                return program
        except PermissionError:
            continue
        except FileNotFoundError:
            continue
    pytest.skip("no Python that another user can run")


def test_an_ordinary_user_has_a_slow_network(home):
    """The components have no capabilities."""
    done = as_nobody(home, program_for_nobody(home), SCRIPT)
    told = json.loads(done.stdout or "null")
    assert told, done.stderr
    if "refusal" in told:
        pytest.skip(told["refusal"])
    assert told["facts"]["round_trip_us"]["gateway-engine"]["min"] >= 2_000
    uid, capabilities = told["said"].splitlines()
    assert int(uid) == pwd.getpwnam("nobody").pw_uid
    assert int(capabilities.split()[1], 16) == 0
