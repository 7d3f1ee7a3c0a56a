"""Files that make a cluster of containers, one for each component, and the hosts file that reaches them.

Each container only waits: the launcher starts agents and relays in it, as on any other host. A component listens on all
addresses of its container, and its peers find it by the container's name.
"""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from pathlib import Path

from exchange.instances import instance_of, role_of
from exchange.settings import RunSettings
from exchange_simulation.launching.files import write_whole
from exchange_simulation.launching.lineup import Lineup

COMPOSE_FILE = "compose.yaml"
KUBERNETES_FILE = "jobs.yaml"
HOSTS_FILE = "hosts.toml"
ALL_ADDRESSES = "0.0.0.0"
SERVICE = "exchange"
"""The headless service of Kubernetes by which pods find each other, and the label of all pods."""
UID = 1000
"""The user of the image, as in Containerfile."""


@dataclass(frozen=True)
class Container:
    """A container for one component."""

    component: str

    @property
    def name(self) -> str:
        """The container's name, which can be that of a host. For example: gateway-2"""
        instance = instance_of(self.component)
        role = role_of(self.component)
        return role if instance == 1 else f"{role}-{instance}"


def containers_of(pairs: int) -> list[Container]:
    """Return a container for each component of a run with this many pairs."""
    return [Container(name) for name in Lineup.of(RunSettings(pairs=pairs)).names]


def write_compose(folder: Path, containers: list[Container], image: str) -> list[Path]:
    """Write a compose file and its hosts file into the folder; return their paths."""
    compose = folder / COMPOSE_FILE
    prefix = f"docker compose -f {shlex.quote(str(compose.absolute()))} exec -T"
    hosts = "\n".join(
        _table(container, f"{prefix} {container.name}", address=container.name) for container in containers
    )
    return [
        write_whole(compose, compose_text(containers, image).encode()),
        write_whole(folder / HOSTS_FILE, hosts.encode()),
    ]


def write_kubernetes(folder: Path, containers: list[Container], image: str, seconds: int) -> list[Path]:
    """Write Kubernetes jobs and their hosts file into the folder; return their paths."""
    hosts = "\n".join(
        _table(container, f"kubectl exec -i job/{_job(container)} --", address=f"{container.name}.{SERVICE}")
        for container in containers
    )
    return [
        write_whole(folder / KUBERNETES_FILE, kubernetes_text(containers, image, seconds).encode()),
        write_whole(folder / HOSTS_FILE, hosts.encode()),
    ]


def compose_text(containers: list[Container], image: str) -> str:
    """Return a compose file with a service for each container."""
    parts = ["# Made by: exchange hosts compose. Each container waits until a run with --hosts uses it.\nservices:\n"]
    for container in containers:
        parts.append(
            f"""\
  {container.name}:
    image: {json.dumps(image)}
    entrypoint: ["sleep", "infinity"]
    init: true
    stop_grace_period: 1s
"""
        )
    return "".join(parts)


def kubernetes_text(containers: list[Container], image: str, seconds: int) -> str:
    """Return a headless service, and a job for each container that ends by itself after this many seconds."""
    service = f"""\
# Made by: exchange hosts kubernetes. Each pod waits until a run with --hosts uses it.
apiVersion: v1
kind: Service
metadata:
  name: {SERVICE}
spec:
  clusterIP: None
  publishNotReadyAddresses: true
  selector:
    app: {SERVICE}
"""
    jobs = [_job_text(container, image, seconds) for container in containers]
    return "---\n".join([service, *jobs])


def _job(container: Container) -> str:
    """Return the name of a container's job."""
    return f"{SERVICE}-{container.name}"


def _job_text(container: Container, image: str, seconds: int) -> str:
    """Return a job whose pod has the container's name, on another node than the others' pods if there are several."""
    return f"""\
apiVersion: batch/v1
kind: Job
metadata:
  name: {_job(container)}
  labels:
    app: {SERVICE}
spec:
  activeDeadlineSeconds: {seconds}
  ttlSecondsAfterFinished: 60
  backoffLimit: 0
  template:
    metadata:
      labels:
        app: {SERVICE}
    spec:
      hostname: {container.name}
      subdomain: {SERVICE}
      restartPolicy: Never
      securityContext:
        runAsNonRoot: true
        runAsUser: {UID}
      affinity:
        podAntiAffinity:
          preferredDuringSchedulingIgnoredDuringExecution:
            - weight: 100
              podAffinityTerm:
                topologyKey: kubernetes.io/hostname
                labelSelector:
                  matchLabels:
                    app: {SERVICE}
      containers:
        - name: exchange
          image: {json.dumps(image)}
          command: ["sleep", "infinity"]
          securityContext:
            allowPrivilegeEscalation: false
          resources:
            requests:
              cpu: "1"
              memory: 1Gi
"""


def _table(container: Container, before: str, address: str) -> str:
    """Return the container's table of the hosts file."""
    title = container.component
    return f'[{title}]\nbefore = {json.dumps(before)}\naddress = "{address}"\nlisten = "{ALL_ADDRESSES}"\n'
