"""`exchange serve` under way, for tests."""

from __future__ import annotations

import http.client
import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import psutil

from tests.exchange_command import command
from tests.machine import PATIENCE_S


class Serving:
    """An `exchange serve` under way."""

    def __init__(self, results: Path) -> None:
        self.results = results
        self.process = subprocess.Popen(
            command("serve", "--results", results), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        self.address = self.process.stdout.readline().strip()
        self.url = urlsplit(self.address)
        self._answers = ExitStack()
        """Closes every answer: one that nobody reads to its end keeps its socket."""

    def request(self, path: str, method: str = "GET", body: str = "", **headers: str) -> http.client.HTTPResponse:
        """Send one request; return its answer. `headers` may replace the right Host header."""
        connection = http.client.HTTPConnection(self.url.netloc, timeout=PATIENCE_S)
        connection.request(method, path, body, {"Connection": "close", **headers})
        return self._answers.enter_context(connection.getresponse())

    def family(self) -> list[psutil.Process]:
        return psutil.Process(self.process.pid).children(recursive=True)

    def close(self) -> None:
        """End the site, and close the answers that it gave."""
        self._answers.close()
        self.process.kill()
        self.process.communicate()

    def interrupt(self) -> int:
        self.process.send_signal(signal.SIGINT)
        self.process.communicate(timeout=PATIENCE_S)
        return self.process.returncode


@contextmanager
def serving(results: Path) -> Iterator[Serving]:
    served = Serving(results)
    try:
        yield served
    finally:
        served.close()
