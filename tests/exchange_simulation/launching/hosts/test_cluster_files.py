"""The files of a cluster: valid by the schemas of others, and a hosts file that fits them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from exchange.settings import RunSettings
from exchange_simulation.launching.hosts.checks import check_hosts
from exchange_simulation.launching.hosts.hosts_file import read_hosts_file
from exchange_simulation.launching.lineup import Lineup
from tests.exchange_command import exchange_in_process

KUBERNETES = ("1.31", "1.34")
IMAGE = "registry.example/team/exchange:0.1"


@pytest.fixture(params=[1, 3])
def pairs(request: pytest.FixtureRequest) -> int:
    return int(request.param)


def made(kind: str, folder: Path, pairs: int) -> Path:
    finished = exchange_in_process("hosts", kind, folder, "--pairs", pairs, "--image", IMAGE)
    assert finished.code == 0, finished.err
    of_pairs = f" --pairs {pairs}" if pairs > 1 else ""
    assert f"exchange hosts check {folder / 'hosts.toml'}{of_pairs}\n" in finished.out
    assert f"exchange run --hosts {folder / 'hosts.toml'} --insecure{of_pairs}\n" in finished.out
    return folder


def test_the_compose_file_is_valid_by_the_schema_of_compose(tmp_path: Path, pairs: int) -> None:
    folder = made("compose", tmp_path / "a folder", pairs)
    schema = ("--builtin-schema", "vendor.compose-spec")
    words = [sys.executable, "-m", "check_jsonschema", *schema, folder / "compose.yaml"]
    finished = subprocess.run(words, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stdout
    services = yaml.safe_load((folder / "compose.yaml").read_text())["services"]
    assert len(services) == 2 * pairs + 1
    assert {service["image"] for service in services.values()} == {IMAGE}


@pytest.mark.parametrize("version", KUBERNETES)
def test_the_jobs_are_valid_by_the_schemas_of_kubernetes(tmp_path: Path, pairs: int, version: str) -> None:
    folder = made("kubernetes", tmp_path / "pods", pairs)
    documents = list(yaml.safe_load_all((folder / "jobs.yaml").read_text()))
    assert [document["kind"] for document in documents] == ["Service", *["Job"] * (2 * pairs + 1)]
    for document in documents:
        kubernetes_validate.validate(document, version, strict=True)


def test_a_pod_is_found_by_the_name_in_the_hosts_file(tmp_path: Path, pairs: int) -> None:
    folder = made("kubernetes", tmp_path / "pods", pairs)
    service, *jobs = yaml.safe_load_all((folder / "jobs.yaml").read_text())
    found_at: dict[str, dict[str, Any]] = {}
    for job in jobs:
        pod = job["spec"]["template"]
        assert service["spec"]["selector"].items() <= pod["metadata"]["labels"].items()
        assert pod["spec"]["subdomain"] == service["metadata"]["name"]
        found_at[f"{pod['spec']['hostname']}.{pod['spec']['subdomain']}"] = job
    file = read_hosts_file(folder / "hosts.toml")
    for name in Lineup.of(RunSettings(pairs=pairs)).names:
        entry = file.entry_of(name)
        job = found_at.pop(str(entry.address))
        assert entry.host.before == ("kubectl", "exec", "-i", f"job/{job['metadata']['name']}", "--")
        assert entry.listens_on == "0.0.0.0"
    assert not found_at


@pytest.mark.parametrize("kind", ["compose", "kubernetes"])
def test_a_run_accepts_the_hosts_file(kind: str, tmp_path: Path, pairs: int) -> None:
    folder = made(kind, tmp_path / "made", pairs)
    check_hosts(RunSettings(hosts=str(folder / "hosts.toml"), pairs=pairs, insecure=True))


def test_the_prefix_of_a_container_names_its_service(tmp_path: Path) -> None:
    folder = made("compose", tmp_path / "a folder", 2)
    services = yaml.safe_load((folder / "compose.yaml").read_text())["services"]
    entry = read_hosts_file(folder / "hosts.toml").entry_of("gateway.2")
    assert entry.host.before == ("docker", "compose", "-f", str(folder / "compose.yaml"), "exec", "-T", "gateway-2")
    assert entry.address == "gateway-2"
    assert entry.address in services


def test_a_folder_that_exists_is_left_alone(tmp_path: Path) -> None:
    finished = exchange_in_process("hosts", "compose", tmp_path)
    assert (finished.code, list(tmp_path.iterdir())) == (2, [])
    assert "exists already: choose another folder" in finished.err
