"""The pages: a table of all runs and trials, two of them side by side, the run under way, and the page of each."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import subprocess
import threading
import time
from collections.abc import AsyncIterator
from http import HTTPStatus
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import parse_qs, quote

import click
import orjson
from markupsafe import Markup
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from exchange.settings import RunSettings
from exchange.words import is_utf8, printable
from exchange_simulation.cli.results.difference import Part, parts_added_to
from exchange_simulation.cli.results.kind import RUNNING, FolderKind, ListedFolder
from exchange_simulation.cli.results.kinds import folders, kind_of, known_kind
from exchange_simulation.cli.results.row_cells import (
    figures_of,
    has_figures,
    moment_of,
    started_of,
    started_s,
    status_of,
    words_of,
)
from exchange_simulation.cli.serve.runs import FORM, Runs
from exchange_simulation.launching.command_line import exchange_command
from exchange_simulation.launching.errors import UserError, reading
from exchange_simulation.launching.files import read_own_file
from exchange_simulation.launching.process_group import ProcessGroup
from exchange_simulation.launching.record.begun import settings_under_way
from exchange_simulation.launching.record.reading import UNFINISHED, damage_named, settings_as_written
from exchange_simulation.reports.drawing.templates import SCRIPT_HASH as REPORT_SCRIPT_HASH
from exchange_simulation.reports.drawing.templates import templates
from exchange_simulation.reports.formats.few_orders import has_enough_orders
from exchange_simulation.reports.live.window import Feed

HERE = Path(__file__).parent
SERVE_SCRIPT = (HERE / "serve.js").read_text(encoding="utf-8")
_SERVE_SCRIPT_DIGEST = hashlib.sha256(SERVE_SCRIPT.encode()).digest()
SERVE_SCRIPT_HASH = f"sha256-{base64.b64encode(_SERVE_SCRIPT_DIGEST).decode()}"
POLICY_ADDITIONS = "; connect-src 'self'; form-action 'self'; base-uri 'none'"
"""What the pages of the site add to the policy that stands in the template of every page."""
SANDBOX = (
    "sandbox allow-scripts; default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
    f"script-src '{REPORT_SCRIPT_HASH}'"
)
"""The policy of a page from the results directory: such a page cannot call this server, whoever wrote the page."""
TEMPLATES = templates(HERE)
TEMPLATES.globals.update(
    script=Markup(SERVE_SCRIPT),
    script_hash=Markup(SERVE_SCRIPT_HASH),
    policy_additions=Markup(POLICY_ADDITIONS),
)
FIRST_FIELDS = ("transport", "orders_per_s", "orders", "duration_s")
"""The options of a run that are asked for first."""
SHOWN = "show"
"""The address of what `exchange results show` prints of a folder, for the kinds of folders that have no page."""
POLL_S = 0.5
"""Time between two looks at a spool."""
KEEP_ALIVE_S = 15.0
"""The longest time between two events. Sending shows whether the browser has gone away."""


class Site:
    """The routes of one results directory. A folder is found by comparing names, never by joining paths."""

    def __init__(self, results: Path, runs: Runs, group: ProcessGroup) -> None:
        self._results = results
        self._runs = runs
        self._group = group
        self._rows: dict[Path, tuple[int, ListedFolder]] = {}
        self._drawing = threading.Lock()

    @property
    def routes(self) -> list[Route]:
        return [
            Route("/", self._index),
            Route("/side", self._side),
            Route("/page/{path:path}", self._page),
            Route("/live/{name}", self._live),
            Route("/events/{name}", self._events),
            Route("/start", self._start, methods=["POST"]),
            Route("/stop", self._stop, methods=["POST"]),
            Route("/rate", self._rate, methods=["POST"]),
        ]

    def on_mistake(self, request: Request, error: click.ClickException) -> Response:
        """Return a page that says what was wrong: a mistake of the user, or a record that cannot be read."""
        path = request.url.path.removeprefix(request.scope["root_path"])
        sentence = error.format_message()
        return self._page_of("mistake.html", path.count("/") - 1, HTTPStatus.BAD_REQUEST, sentence=sentence)

    def _page_of(self, template: str, depth: int, status: HTTPStatus = HTTPStatus.OK, **values: Any) -> Response:
        """Return a page from a template. Its address is `depth` folders below that of the first page."""
        html = TEMPLATES.get_template(template).render(
            root="../" * depth or "./", results=printable(str(self._results)), **values
        )
        return HTMLResponse(html, status)

    def _index(self, _request: Request) -> Response:
        return self._table()

    def _table(self, mistake: str = "", asked: dict[str, str] | None = None) -> Response:
        """Return the first page. After a mistake in its form, it shows the mistake and the values that were `asked`."""
        rows = []
        for folder in folders(self._results):
            kind = kind_of(folder)
            if kind is not None:
                rows.append(self._row(folder, kind))
        rows.sort(key=moment_of, reverse=True)
        without_record = [row.name for row in rows if row.status in (RUNNING, UNFINISHED) and row.what == "run"]
        live = [name for name in without_record if is_utf8(name) and self._is_under_way(self._results / name)]
        first = [option for option in FORM if option.field in FIRST_FIELDS]
        more = [option for option in FORM if option.field not in FIRST_FIELDS]
        return self._page_of(
            "table.html",
            0,
            HTTPStatus.BAD_REQUEST if mistake else HTTPStatus.OK,
            rows=[_cells(row, row.name in live) for row in rows],
            live=live,
            mistake=mistake,
            asked=asked or {},
            busy=self._runs.is_under_way(),
            first=first,
            more=more,
        )

    def _row(self, folder: Path, kind: FolderKind) -> ListedFolder:
        """Return the folder's row. A record that has not changed is not read again."""
        record = folder / kind.file
        if not record.exists():
            return kind.row(folder)
        written_ns = record.stat().st_mtime_ns
        if folder in self._rows:
            known_written_ns, known_row = self._rows[folder]
            if known_written_ns == written_ns:
                return known_row
        row = kind.row(folder)
        if row.status != RUNNING:  # its process may end without another record
            self._rows[folder] = written_ns, row
        return row

    def _side(self, request: Request) -> Response:
        """Return a page with two records of a kind side by side, as `exchange results diff` shows them."""
        names = request.query_params.getlist("of")
        if len(names) != 2:
            raise UserError(f"{len(names)} were chosen: choose two, to see them side by side")
        one = self._folder([names[0]])
        other = self._folder([names[1]])
        kind = known_kind(one)
        other_kind = known_kind(other)
        if kind is not other_kind:
            kinds = f"{one.name} is a {kind.name} and {other.name} is a {other_kind.name}"
            raise UserError(f"{kinds}: choose two of a kind")
        shown: list[Part] = []
        with damage_named(one, other), parts_added_to(shown):
            kind.show_difference(kind.differ(kind.read(one), kind.read(other)))
        return self._page_of("side.html", 0, shown=shown, names=names)

    def _folder(self, names: list[str]) -> Path:
        """Return the folder of a run, of a trial, or of a trial's run. The answer is 404 if there is none."""
        folder = self._results
        for name in names:
            subfolders = {path.name: path for path in folders(folder)}
            if name not in subfolders:
                _not_found()
            folder = subfolders[name]
        return folder

    def _page(self, request: Request) -> Response:
        """Return the folder's page for page/FOLDER/FILE. A page older than its record is made again."""
        parts = request.path_params["path"].split("/")
        if len(parts) < 2:
            _not_found()
        *names, file = parts
        folder = self._folder(names)
        kind = kind_of(folder)
        if kind is None:
            _not_found()
        if kind.name == "run" and len(names) == 1 and self._is_under_way(folder):
            return _redirect(f"../../live/{folder.name}")
        if file == kind.file and (folder / file).exists():
            return Response(_content_of(folder / file), media_type="application/json")
        page = kind.page or SHOWN
        if file == "":
            return _redirect(page)
        if file != page:
            _not_found()
        if kind.page:
            content = _content_of(self._fresh_page(folder, kind))
            return HTMLResponse(content, headers={"Content-Security-Policy": SANDBOX})
        text = self._output_of("results", "show", folder)
        return self._page_of("side.html", len(parts), names=[folder.name], shown=[], text=text)

    def _fresh_page(self, folder: Path, kind: FolderKind) -> Path:
        page = folder / kind.page
        record = folder / kind.file
        with self._drawing:
            if not page.exists() or _is_newer(record, page):
                self._output_of("report", folder, "--no-spark")
        return page

    def _output_of(self, *words: object) -> str:
        """Run an `exchange` command; return its output. UserError with its message if it fails."""
        done = subprocess.run(
            exchange_command(*words),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            process_group=self._group.id,
            check=False,
        )
        if done.returncode != 0:
            message = done.stderr.strip().removeprefix("Error: ")
            raise UserError(message or "the page could not be made")
        return done.stdout

    def _is_under_way(self, folder: Path) -> bool:
        return self._runs.is_under_way(folder.name) or settings_under_way(folder) is not None

    def _live(self, request: Request) -> Response:
        """Return the live page of a run under way, or of the last run started here; else redirect to the results."""
        name = request.path_params["name"]
        is_ours = name == self._runs.name
        if not is_ours and not self._is_under_way(self._folder([name])):
            return _redirect(f"../page/{name}/")
        return self._live_page(name, depth=1)

    def _live_page(self, name: str, depth: int, mistake: str = "") -> Response:
        is_ours = self._runs.is_under_way(name)
        status = HTTPStatus.BAD_REQUEST if mistake else HTTPStatus.OK
        asked = self._runs.asked if is_ours else {}
        was_ours = name == self._runs.name
        return self._page_of(
            "live.html", depth, status, name=name, is_ours=is_ours, was_ours=was_ours, asked=asked, mistake=mistake
        )

    def _events(self, request: Request) -> Response:
        name = request.path_params["name"]
        return StreamingResponse(self._event_stream(name, self._settings(name)), media_type="text/event-stream")

    def _settings(self, name: str) -> RunSettings:
        """Return the settings of a run under way, or of the last run started here."""
        if name == self._runs.name:
            return self._runs.settings
        written = settings_under_way(self._folder([name]))
        if not written:
            _not_found()
        return settings_as_written(written)

    async def _event_stream(self, name: str, settings: RunSettings) -> AsyncIterator[bytes]:
        """Yield an event for each second of the run, and one at its end."""
        folder = self._results / name
        feed = Feed(settings, folder)
        sent_s = 0.0
        while True:
            goes_on = await run_in_threadpool(self._is_under_way, folder)
            has_grown = await run_in_threadpool(feed.has_grown)
            is_first_event = sent_s == 0.0
            if has_grown or is_first_event:
                yield _event("latest", await run_in_threadpool(feed.latest))
                sent_s = time.monotonic()
            elif time.monotonic() - sent_s > KEEP_ALIVE_S:
                yield b":\n\n"
                sent_s = time.monotonic()
            if not goes_on:
                yield _event("ended", await run_in_threadpool(self._end_of_run, folder))
                return
            await asyncio.sleep(POLL_S)

    def _end_of_run(self, folder: Path) -> dict[str, Any]:
        """Return how the run ended; if it has no folder, the last lines of its output, since it could not start."""
        kind = kind_of(folder)
        if kind is None:
            last_lines = self._runs.last_lines(folder.name)
            return {"words": "; ".join(last_lines) if last_lines else "it ended", "has_page": False}
        row = kind.row(folder)
        words = f"{row.status}: {row.reason}" if row.reason else row.status
        return {"words": words, "has_page": True}

    async def _start(self, request: Request) -> Response:
        form = await _form_of(request)
        asked = {name: values[0] for name, values in form.items()}
        return await run_in_threadpool(self._start_run, asked)

    def _start_run(self, asked: dict[str, str]) -> Response:
        try:
            return _redirect(f"live/{self._runs.start(asked)}")
        except click.ClickException as error:
            return self._table(error.format_message(), asked)

    def _stop(self, _request: Request) -> Response:
        self._runs.stop()
        return _redirect(f"live/{self._runs.name}" if self._runs.name else "./")

    async def _rate(self, request: Request) -> Response:
        form = await _form_of(request)
        rates = form.get("rate", [""])
        return await run_in_threadpool(self._change_rate, rates[0])

    def _change_rate(self, rate: str) -> Response:
        """Run at another rate. After a mistake in the rate the run goes on, and the same page shows the mistake."""
        try:
            return _redirect(f"live/{self._runs.change_rate(rate)}")
        except click.ClickException as error:
            return self._live_page(self._runs.name, depth=0, mistake=error.format_message())


async def _form_of(request: Request) -> dict[str, list[str]]:
    body = await request.body()
    return parse_qs(body.decode(errors="replace"))


def _not_found() -> NoReturn:
    raise HTTPException(HTTPStatus.NOT_FOUND)


def _redirect(where: str) -> Response:
    return RedirectResponse(quote(where), HTTPStatus.SEE_OTHER)


def _event(name: str, value: dict[str, Any]) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (name.encode(), orjson.dumps(value))


def _cells(row: ListedFolder, is_live: bool) -> dict[str, Any]:
    """Return a row of the table: its texts, and the values by which the table is sorted."""
    _, offered, p50, p99 = figures_of(row) if has_figures(row) else ("", "", "", "")
    known_rates = [rate for rate in row.orders_per_s if rate is not None]
    highest = max(known_rates, default=None)
    return {
        "name": printable(row.name),
        "has_address": is_utf8(row.name),
        "is_live": is_live,
        "status": "under way" if is_live else status_of(row),
        "what": row.what,
        "started": started_of(row),
        "at": started_s(row),
        "over": ", ".join(row.transports),
        "offered": offered,
        "highest": highest,
        "p50": p50,
        "p50_us": row.p50_us,
        "p99": p99,
        "p99_us": row.p99_us if has_enough_orders("p99", row.orders_measured) else None,
        "words": "" if has_figures(row) else words_of(row),
    }


def _is_newer(record: Path, page: Path) -> bool:
    """Return whether the record was written after the page; False without a record."""
    return record.exists() and record.stat().st_mtime_ns > page.stat().st_mtime_ns


def _content_of(path: Path) -> bytes:
    """Return a file's content. UserError if the file is a link, or cannot be read."""
    with reading(path):
        return read_own_file(path)
