"""The HTTP server: on 127.0.0.1 only, and for those who know its token only.

Every request is checked before anything is looked up: the Host header, so that no name of another site leads here; the
token, which is the first part of the path; for a POST also the Origin, and that it is short.
"""

from __future__ import annotations

import hmac
import secrets
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import BoundedSemaphore
from typing import Any, Protocol
from urllib.parse import parse_qs, unquote, urlsplit

from exchange_simulation.launching.errors import UserError

LOOPBACK = "127.0.0.1"
MOST_CONNECTIONS = 64
MOST_BYTES = 64 * 1024
"""Longest form that is read."""
HEADERS = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}

Form = dict[str, list[str]]


@dataclass(frozen=True)
class Answer:
    """A response: a body, or events that come one after the other."""

    body: bytes = b""
    status: HTTPStatus = HTTPStatus.OK
    kind: str = "text/html; charset=utf-8"
    headers: dict[str, str] = field(default_factory=dict)
    events: Iterator[bytes] | None = None


class Answering(Protocol):
    """Answers the requests that have passed the checks."""

    def get(self, parts: list[str], query: Form) -> Answer: ...

    def post(self, parts: list[str], form: Form) -> Answer: ...


class Refused(Exception):
    """A request that is not answered; it gets no reason that would help to guess."""

    def __init__(self, status: HTTPStatus = HTTPStatus.FORBIDDEN) -> None:
        super().__init__(status)
        self.status = status


class Server(ThreadingHTTPServer):
    """A thread for each request; none of them keeps the process alive."""

    daemon_threads = True

    def __init__(self, site: Answering, port: int) -> None:
        try:
            super().__init__((LOOPBACK, port), Handler)
        except OSError as error:
            raise UserError(f"cannot listen on {LOOPBACK}:{port}: {error.strerror}; choose another --port") from error
        self._places = BoundedSemaphore(MOST_CONNECTIONS)
        self.site, self.token, self.host = site, secrets.token_urlsafe(24), f"{LOOPBACK}:{self.server_port}"

    @property
    def address(self) -> str:
        return f"http://{self.host}/{self.token}/"

    def verify_request(self, request: Any, client_address: Any) -> bool:  # noqa: ARG002
        """False, which closes the connection, if all places are taken; a silent one frees its place after 30 s."""
        return self._places.acquire(blocking=False)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that goes away in the middle is no error."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


class Handler(BaseHTTPRequestHandler):
    server: Server
    timeout = 30
    server_version, sys_version = "exchange", ""

    def do_GET(self) -> None:
        self._answer(self.server.site.get)

    def do_POST(self) -> None:
        self._answer(lambda parts, _: self.server.site.post(parts, self._form()))

    def _answer(self, answer_of: Callable[[list[str], Form], Answer]) -> None:
        try:
            parts, query = self._checked()
            self._send(answer_of(parts, query))
        except Refused as refused:
            words = f"{refused.status.value} {refused.status.phrase}\n"
            self._send(Answer(words.encode(), refused.status, "text/plain"))

    def _checked(self) -> tuple[list[str], Form]:
        """The parts of the path behind the token, and the query. Refused if the request may not be answered."""
        url = urlsplit(self.path)
        token, *parts = unquote(url.path).removeprefix("/").split("/")
        is_known = hmac.compare_digest(token.encode(), self.server.token.encode())
        if self.headers.get("Host") != self.server.host or not is_known:
            raise Refused
        return parts, parse_qs(url.query)

    def _form(self) -> Form:
        """The posted form. Refused unless a page of ours posted it, and it is short."""
        length = self.headers.get("Content-Length", "")
        if self.headers.get("Origin") != f"http://{self.server.host}":
            raise Refused
        if not length.isdecimal() or int(length) > MOST_BYTES:
            raise Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        return parse_qs(self.rfile.read(int(length)).decode(errors="replace"))

    def _send(self, answer: Answer) -> None:
        self.send_response(answer.status)
        for name, value in {**HEADERS, "Content-Type": answer.kind, **answer.headers}.items():
            self.send_header(name, value)
        if answer.events is None:
            self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        self.wfile.write(answer.body)
        for event in answer.events or ():
            self.wfile.write(event)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: the address holds the token."""
