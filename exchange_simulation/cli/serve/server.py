"""The HTTP server: Starlette's application on uvicorn, on 127.0.0.1 only, and for those who know its token only.

Each request is checked before anything is looked up. Starlette's TrustedHostMiddleware checks the Host header, so that
no name of another site leads here. TokenAndOrigin checks the token, which is the first part of the path, and of a POST
also that a page of ours sent it, and that it is short.
"""

from __future__ import annotations

import asyncio
import hmac
import secrets
import socket
import traceback
from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import Any

import click
import uvicorn
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from exchange_simulation.launching.errors import UserError

LOOPBACK = "127.0.0.1"
MOST_CONNECTIONS = 64
SILENCE_S = 30.0
"""A connection that sends nothing for this long after its begin is closed."""
MOST_FORM_BYTES = 64 * 1024
"""The longest form that is read."""
GRACE_S = 1
"""How long requests that are being answered may take once the server ends."""
HEADERS = {
    "Server": "exchange",
    "Cache-Control": "no-store",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}

OnMistake = Callable[[Request, click.ClickException], Response]
"""Makes the page for a mistake of the user."""


class TokenAndOrigin:
    """Middleware that refuses every request that no page of ours has made, without a reason that would help to guess.

    The application behind this middleware has the path that follows the token.
    """

    def __init__(self, app: ASGIApp, token: str, origin: str) -> None:
        self._app = app
        self._token = token
        self._origin = origin

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal = self._refusal(scope)
        if refusal is not None:
            await _refused(refusal)(scope, receive, send)
            return
        await self._app({**scope, "root_path": f"/{self._token}"}, receive, send)

    def _refusal(self, scope: Scope) -> HTTPStatus | None:
        """The status with which a request is refused; None if it is to be answered."""
        token, _, _path = scope["path"].removeprefix("/").partition("/")
        if not hmac.compare_digest(token.encode(), self._token.encode()):
            return HTTPStatus.FORBIDDEN
        if scope["method"] != "POST":
            return None
        headers = Headers(scope=scope)
        if headers.get("Origin") != self._origin:
            return HTTPStatus.FORBIDDEN
        length = headers.get("Content-Length", "")
        is_short = length.isdecimal() and int(length) <= MOST_FORM_BYTES
        if not is_short:
            return HTTPStatus.REQUEST_ENTITY_TOO_LARGE
        return None


class BoundedProtocol(H11Protocol):
    """uvicorn's HTTP with at most MOST_CONNECTIONS connections: one more is closed at once.

    A connection that sends nothing is closed after SILENCE_S, so it does not keep its place.
    """

    _silence: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn's has it
        super().connection_made(transport)
        if len(self.connections) > MOST_CONNECTIONS:
            transport.close()
        else:
            self._silence = self.loop.call_later(SILENCE_S, transport.close)

    def data_received(self, data: bytes) -> None:
        self._end_silence()
        super().data_received(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._end_silence()
        super().connection_lost(exc)

    def _end_silence(self) -> None:
        if self._silence is not None:
            self._silence.cancel()
            self._silence = None


class Server:
    """A server that listens from its start on, and answers while `run` runs. As a context it closes its socket."""

    def __init__(self, routes: Sequence[BaseRoute], port: int, on_mistake: OnMistake | None = None) -> None:
        """Listen on the port, 0 for a free one. UserError if the port is taken, or not allowed."""
        self._socket = _bound(port)
        self.port: int = self._socket.getsockname()[1]
        token = secrets.token_urlsafe(24)
        origin = f"http://{LOOPBACK}:{self.port}"
        self.address = f"{origin}/{token}/"
        handlers: dict[Any, Any] = {HTTPException: _on_refusal, Exception: _on_mistake_of_ours}
        if on_mistake is not None:
            handlers[click.ClickException] = on_mistake
        app = Starlette(
            routes=routes,
            middleware=[
                Middleware(TrustedHostMiddleware, allowed_hosts=[LOOPBACK], www_redirect=False),
                Middleware(TokenAndOrigin, token=token, origin=origin),
            ],
            exception_handlers=handlers,
        )
        app.router.redirect_slashes = False
        self._uvicorn = uvicorn.Server(
            uvicorn.Config(
                app,
                http=BoundedProtocol,
                ws="none",
                loop="asyncio",
                lifespan="off",
                log_config=None,
                log_level="critical",  # the address, which would be in a log, holds the token
                access_log=False,
                proxy_headers=False,
                server_header=False,
                headers=list(HEADERS.items()),
                timeout_graceful_shutdown=GRACE_S,
            )
        )

    def run(self) -> None:
        """Answer requests until SIGINT or SIGTERM, whose handler is then called, or until `stop`."""
        self._uvicorn.run(sockets=[self._socket])

    def stop(self) -> None:
        """Let `run` return; for another thread."""
        self._uvicorn.should_exit = True

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()


def _bound(port: int) -> socket.socket:
    listening = socket.socket()
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((LOOPBACK, port))
        listening.listen()
    except OSError as error:
        listening.close()
        raise UserError(f"cannot listen on {LOOPBACK}:{port}: {error.strerror}; choose another --port") from error
    return listening


def _refused(status: HTTPStatus) -> Response:
    return PlainTextResponse(f"{status.value} {status.phrase}\n", status)


def _on_refusal(_request: Request, error: HTTPException) -> Response:
    return _refused(HTTPStatus(error.status_code))


def _on_mistake_of_ours(_request: Request, error: Exception) -> Response:
    traceback.print_exception(error)
    return _refused(HTTPStatus.INTERNAL_SERVER_ERROR)
