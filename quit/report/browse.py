"""``quit browse``: a small server, for this machine only, to search questions and open one. It only reads. Its one
script sends the search when a filter changes.

A page from elsewhere that a person has open can ask it nothing: another host name than this machine's is refused (so a
name that is made to point here gains nothing), nothing but GET and HEAD is answered, and pages may not be framed.
"""

from __future__ import annotations

import socket
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Any
from urllib.parse import urlencode

import uvicorn
from starlette.applications import Starlette
from starlette.datastructures import QueryParams
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from quit.common.ids import is_given
from quit.dataset.release import Release
from quit.engine.workspace import Workspace
from quit.errors import InputError, QuitError, SettingsError
from quit.release.view import shown_readers
from quit.render.html import TEMPLATES, environment
from quit.report.data import gather, last_changed
from quit.report.lookup import COLUMNS, FILTERS, Lookup, Search, Version
from quit.report.page import render
from quit.report.tree import tree
from quit.settings import Settings
from quit.status.losses import ways_out
from quit.status.story import story

HOST = "127.0.0.1"
_SAFE = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Frame-Options": "DENY",
    "Cache-Control": "no-store",
}
_ONLY_OURS = (
    "default-src 'none'; script-src 'self'; style-src {}; img-src data:; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
_RESULTS = 50  # questions on one page of search results
_DEFAULTS = (("order", "id"), ("page", "1"))
"""What an address need not say."""
_LINKS = {"home": "/", "question": "/question/", "report": "/report"}
"""Addresses of the pages; a question's id follows that of ``question``."""


def application(workspace: Workspace | Release, settings: Settings) -> Starlette:
    """Return the application: ``/`` searches, ``/question/<id>`` shows one, ``/report`` is the report with links."""
    return Starlette(
        routes=Pages(workspace, settings).routes(),
        middleware=[Middleware(TrustedHostMiddleware, allowed_hosts=[HOST, "localhost"])],
        exception_handlers={QuitError: _error_page, HTTPException: _error_page},
    )


def serve(workspace: Workspace | Release, settings: Settings, port: int, on_start: Callable[[str], None]) -> None:
    """Serve until Ctrl-C. ``on_start`` receives the address. Raises :class:`SettingsError` when the port is taken."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    with listener:
        try:
            listener.bind((HOST, port))
        except OSError as error:
            raise SettingsError(
                f"Port {port} of this machine cannot be used: {error.strerror}. Name another one: --port 0 takes a "
                "free one."
            ) from error
        on_start(f"http://{HOST}:{listener.getsockname()[1]}/")
        server = uvicorn.Server(uvicorn.Config(application(workspace, settings), log_level="warning", access_log=False))
        with suppress(KeyboardInterrupt):  # the way to end it
            server.run(sockets=[listener])


class Pages:
    """The pages of one workspace or release. Starlette calls them in several threads."""

    def __init__(self, source: Workspace | Release, settings: Settings) -> None:
        self._workspace, self._settings = source, settings
        readers = shown_readers(source, settings)
        self._readers = [reader.name for reader in readers]
        self._labelers = [reader.name for reader in readers if reader.role == "labeler"]
        self._lookup = Lookup(source, len(self._labelers))
        self._report: tuple[Version, str] | None = None
        self._drawing = threading.Lock()

    def routes(self) -> list[Route]:
        return [
            Route("/", self.search),
            Route("/question/{question_id:path}", self.question),
            Route("/report", self.report),
            Route("/style.css", self.file),
            Route("/browse.js", self.file),
        ]

    def search(self, request: Request) -> Response:
        """Return a page of results. What narrows them is in the address, and nothing else is, so that it can be passed
        on. Raises as :meth:`Search.sql` does, ``HTTPException`` for another parameter."""
        parameters = request.query_params
        pairs = [(name, value) for name, value in parameters.multi_items() if value and (name, value) not in _DEFAULTS]
        if len(pairs) < len(parameters.multi_items()):  # a form sends its empty fields too
            return RedirectResponse("/?" + urlencode(pairs) if pairs else "/", 303, _headers("'self'"))
        search = _search(parameters)
        results = self._lookup.search(search, int(parameters.get("page", "1")[:9]), _RESULTS)
        search_pairs = [(name, value) for name, value in parameters.multi_items() if name != "page"]
        return self._html(
            "search.html",
            date=last_changed(self._workspace),
            results=results,
            search=search,
            columns={column: COLUMNS[column] for column in results.columns},
            query="?" + urlencode(search_pairs) if search_pairs else "",
            first=(results.page - 1) * _RESULTS,
            to=lambda **link: (
                "/?" + urlencode([*(pair for pair in search_pairs if pair[0] not in link), *link.items()])
            ),
        )

    def question(self, request: Request) -> Response:
        """Return a question's page. Raises ``HTTPException`` (404) for one that there is not."""
        identity, search = request.path_params["question_id"], _search(request.query_params)
        row = self._lookup.row(identity)
        if row is None:
            raise HTTPException(404, f"There is no question {identity!r} in this workspace.")
        before, after = self._lookup.neighbours(identity, search)
        query = f"?{request.url.query}" if request.url.query else ""
        life = story(self._workspace, identity)
        return self._html(
            "question.html",
            story=life,
            given=any(is_given(identity, hint["hint_id"]) for hint in life["hints"]),
            ways_out=ways_out(life["rejects"], self._workspace),
            nodes=tree(life, self._labelers, self._readers),
            probe=Counter((answer["reader"], answer["answer"], answer["correct"]) for answer in life["probe"]),
            releases=self._lookup.releases(identity),
            row=row,
            query=query,
            before=before,
            after=after,
        )

    def report(self, request: Request) -> Response:
        """Return the report, made again where the tables have changed."""
        with self._drawing:  # one at a time: at full size it takes a while
            version = self._lookup.version()
            if self._report is None or self._report[0] != version:
                html = render(gather(self._workspace, self._settings), _LINKS)
                self._report = version, html
        # Plots carry their styles in attributes, which only 'unsafe-inline' allows; scripts in the page stay forbidden.
        return _answer(self._report[1], "'unsafe-inline'")

    def file(self, request: Request) -> Response:
        """Return the style sheet or the script."""
        return FileResponse(TEMPLATES / request.url.path[1:], headers=_headers("'self'"))

    def _html(self, template: str, **values: Any) -> Response:
        name = self._settings.card.name or self._workspace.name
        return _answer(environment().get_template(template).render(workspace=name, links=_LINKS, **values).lstrip())


def _search(parameters: QueryParams) -> Search:
    """Return the search in an address. Raises ``HTTPException`` (400) for another parameter."""
    names = ("q", *FILTERS, "order", "check", "page")
    if unknown := [name for name in parameters if name not in names]:
        raise HTTPException(400, f"There is no parameter {unknown[0]!r}. Known: {', '.join(names)}.")
    if not parameters.get("page", "1").isdecimal() and parameters["page"]:
        raise HTTPException(400, f"{parameters['page'][:40]!r} is not the number of a page.")
    return Search(
        parameters.get("q", "")[:1000],
        {name: parameters.get(name, "") for name in FILTERS},
        parameters.get("order") or "id",
        list(filter(None, parameters.getlist("check"))),
    )


def _headers(styles: str) -> dict[str, str]:
    return {**_SAFE, "Content-Security-Policy": _ONLY_OURS.format(styles)}


def _answer(html: str, styles: str = "'self'", status: int = 200) -> Response:
    return HTMLResponse(html, status, _headers(styles))


def _error_page(request: Request, error: Exception) -> Response:
    status, text = 400 if isinstance(error, InputError) else 500, str(error)
    if isinstance(error, HTTPException):
        status, text = error.status_code, error.detail
    title = {400: "No such search", 404: "Nothing is here"}.get(status, "This page cannot be shown")
    values = {"title": title, "text": text, "links": _LINKS}
    return _answer(environment().get_template("said.html").render(values).lstrip(), status=status)
