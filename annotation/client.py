"""A Label Studio server as push and pull see it: calls of its SDK that are repeated, and errors that say what to do.

Everything that is asked of a server goes through the SDK's public interface. A token is never part of a message.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import httpx

from quit.annotation.server import stored_account
from quit.common.endpoints import UNTRUSTED, address, is_address, is_local, secret_of, secrets_in
from quit.common.extras import importing
from quit.common.retries import with_retries
from quit.errors import InputError, ServerError, SettingsError
from quit.settings import Review
from quit.text.secrets import register_secret, shown
from quit.text.words import shell_word

with importing("Review"):
    from label_studio_sdk import LabelStudio
    from label_studio_sdk.core.api_error import ApiError

TOKEN = "LABEL_STUDIO_API_KEY"
TIMEOUT_SECONDS = 120.0
"""Longest wait for one reply."""
PAUSE_SECONDS = 1.0
"""Pause before the second attempt at a request; doubles each time."""
_ABOUT_TO_ANSWER = (429, 502, 503, 504)
_Answer = TypeVar("_Answer")


class Server:
    """One Label Studio server. Use :func:`connect`, which also checks that it is there and takes the token."""

    def __init__(self, url: str, token: str, settings: Review, start: str | None = None) -> None:
        register_secret(token, TOKEN)
        self.url = url.rstrip("/")
        self._start = start  # the command that starts the workspace's own server; None: it is another one
        self._settings = settings
        self._token = token
        self._studio = self._connection()
        self._people: dict[int, str] = {}

    def _connection(self) -> LabelStudio:
        """Return a new connection. It follows no redirect: what is sent would arrive as a question, or elsewhere."""
        try:
            local = is_local(self.url)
            self._client = httpx.Client(timeout=TIMEOUT_SECONDS, follow_redirects=False, trust_env=not local)
            return LabelStudio(base_url=self.url, api_key=self._token, max_retries=0, httpx_client=self._client)
        except ApiError:  # the SDK reads in a personal access token itself that it has expired
            raise self._refusal() from None

    def ask(self, call: Callable[[LabelStudio], _Answer], *, again: bool = True) -> _Answer:
        """Make one call of the SDK and return its answer: ``server.ask(lambda studio: studio.projects.get(7))``.

        ``again``: whether it may be sent twice (not an import, which would double its tasks). Raises
        :class:`ServerError` when the server is down, busy or answers with something else than JSON,
        :class:`SettingsError` when it refuses the token, :class:`InputError` for what it does not have or accept.
        """
        retries = self._settings.retries if again else 0
        attempts = f"tried {retries + 1} times" if retries else "tried once"

        def work() -> _Answer:
            try:
                return call(self._studio)
            except ApiError as error:
                problem = self._problem(error)
            except (httpx.HTTPError, OSError) as error:
                problem = f"could not be reached ({type(error).__name__})"
                if "CERTIFICATE_VERIFY_FAILED" in str(error):
                    raise SettingsError(f"{self.url} {problem}. {UNTRUSTED}") from None
            self._client.close()
            self._studio = self._connection()  # what broke may lead to a broken process again
            own = f"it is the workspace's own, start it in another terminal ({self._start}), then "
            start = "" if self._start is None else own
            raise ServerError(
                f"The Label Studio server {self.url} {problem} ({attempts}). Nothing is lost: {start}run the same "
                "command again when it is up."
            )

        return with_retries(work, retries, PAUSE_SECONDS, lambda error: isinstance(error, ServerError))

    def _problem(self, error: ApiError) -> str:
        """Return what is wrong with a server for a while; raise what asking again cannot fix."""
        code = error.status_code or 0
        if code in (401, 403):
            raise self._refusal() from None
        if code == 404:
            raise InputError(f"{self.url} has no such thing: {_detail(error)}") from None
        if 200 <= code < 300:
            return "answered with a page instead of data: it may be starting, or half way through an upgrade"
        if 300 <= code < 400:
            target = httpx.URL(f"{self.url}/").join((error.headers or {}).get("location", "")).copy_with(query=None)
            raise SettingsError(
                f"{self.url} redirects to {shown(str(target).partition('/api/')[0])}. Redirects are not followed: name "
                "the address that answers (--url)."
            ) from None
        if code < 500 and code not in _ABOUT_TO_ANSWER:
            raise InputError(f"{self.url} did not accept a request: {_detail(error)}") from None
        return f"answered {code}: it may be overloaded, or half way through an upgrade"

    def _refusal(self) -> SettingsError:
        if self._start is not None:
            return SettingsError(
                f"{self.url} refused the token of the workspace's own server: another server answers there. Start the "
                f"own one at another port, in another terminal: {self._start} --port 8081"
            )
        return SettingsError(
            f"{self.url} refused the token: it is wrong or has expired, or its kind is switched off there. Make a new "
            f"one under {self.url}/user/account and set {TOKEN} to it."
        )

    def tasks(self, project: int, include: Sequence[str], among: Sequence[int] | None = None) -> Iterator[Any]:
        """Yield a project's tasks (the SDK's) with ``id`` and the fields of ``include``, ordered by id.

        ``among``: only those with these numbers, a hundred at most: they are part of the address. Pages begin after the
        last id seen, not at a number of rows, so tasks that are deleted meanwhile make none of the others be skipped,
        and the last one is empty: a server may have a smaller limit.
        """
        conditions = [] if among is None else [_condition("in_list", [*among])]
        last = 0
        while tasks := self._page(project, include, [*conditions, _condition("greater", last)]):
            yield from tasks
            last = max(task.id for task in tasks)

    def _page(self, project: int, include: Sequence[str], items: Sequence[Any]) -> list[Any]:
        query = json.dumps({"filters": {"conjunction": "and", "items": items}, "ordering": ["tasks:id"]})
        fields, size = ",".join(dict.fromkeys(("id", *include))), self._settings.page_tasks
        pages: Any = self.ask(
            lambda studio: studio.tasks.list(
                project=project, include=fields, resolve_uri=False, page_size=size, query=query
            )
        )
        return pages.items or []

    def invitation(self, project: int) -> str:
        """Return the link with which people make an account and come to the first task of ``project``.

        Of the workspace's own server only, "" for others: their log-in leads to tasks that somebody else holds.
        """
        if self._start is None:
            return ""
        path = self.ask(lambda studio: studio.organizations.invites.get_invite_link()).invite_url
        return f"{self.url}{path}&next=%2Fprojects%2F{project}%2Fdata%3Flabeling%3D1"

    def email(self, number: int) -> str:
        """Return the e-mail of an account; ``user-7`` where the server names it no more."""
        if number not in self._people:
            self._people.update(self.accounts())
            self._people.setdefault(number, f"user-{number}")
        return self._people[number]

    def accounts(self) -> dict[int, str]:
        """Return number -> e-mail of every account."""
        users = self.ask(lambda studio: studio.users.list())
        return {user.id: user.email for user in users if user.id and user.email}


def connect(workspace: Path, settings: Review, url: str | None = None) -> Server:
    """Return the server, after checking that it answers and takes the token.

    ``url``: any Label Studio server; without it, the workspace's local one. The token comes from
    ``LABEL_STUDIO_API_KEY``, or for the local server from its account file. Raises as :meth:`Server.ask` does, and
    :class:`InputError` for an address of anything else.
    """
    account = stored_account(workspace)
    url = url and url.rstrip("/")
    local = account is not None and url in (None, account.url)
    start = f"quit review serve -w {shell_word(workspace)}"
    if url is None:
        if account is None:
            raise SettingsError(
                f"There is no local server yet. Start one in another terminal ({start}), or name a server: --url URL."
            )
        url = account.url
    if not is_address(url):
        raise SettingsError(f"--url {url!r} is not an address. Write it as https://labels.example.org.")
    if secrets_in(url):  # it is kept with the project
        raise SettingsError(f"--url {address(url)} holds a password or a key. Set {TOKEN} to your token instead.")
    token = account.token if local and account else secret_of(TOKEN)
    if not token:
        raise SettingsError(f"{url} needs a token. Copy one from {url}/user/account and set the variable {TOKEN}.")
    server = Server(url, token, settings, start if local else None)
    try:
        email = server.ask(lambda studio: studio.users.whoami()).email
    except (AttributeError, TypeError, httpx.InvalidURL):  # the SDK checks neither addresses nor answers
        email = None
    if not email:
        raise InputError(f"{url} is not a Label Studio server. Check --url.")
    return server


def _condition(operator: str, value: Any) -> dict[str, Any]:
    return {"filter": "filter:tasks:id", "operator": operator, "type": "Number", "value": value}


def person_of(annotation: Mapping[str, Any], field: str = "completed_by") -> int | None:
    """Return the number of an annotation's account, which the server gives as a number or as an object."""
    value = annotation.get(field)
    return value.get("id") if isinstance(value, Mapping) else value


def _detail(error: ApiError) -> str:
    reason = error.body if isinstance(error.body, dict) else {}
    return shown(str(reason.get("validation_errors") or reason.get("detail") or reason or f"code {error.status_code}"))
