"""A Label Studio server as push and pull see it: pages of tasks, projects, and errors that say what to do.

The SDK authenticates (personal access tokens and legacy ones) and sends; answers are read as plain JSON, because the
SDK's models of 2,600 tasks take longer than the server does. A token is never part of a message.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx

from annotation.server import stored_account
from quit.common.secrets import sends, shown
from quit.errors import InputError, MissingDependency, ServerError, SettingsError
from quit.settings import Review

try:
    from label_studio_sdk import LabelStudio
    from label_studio_sdk.core.api_error import ApiError
except ImportError as error:
    raise MissingDependency(
        f"Review needs label-studio-sdk ({error}). Run: pip install -c constraints.txt -e '.[review]'"
    ) from error

TOKEN = "LABEL_STUDIO_API_KEY"
_ABOUT_TO_ANSWER = (429, 502, 503, 504)


class Server:
    """One Label Studio server. Use :func:`connect`, which also checks that it is there and takes the token."""

    def __init__(self, url: str, token: str, settings: Review) -> None:
        sends(token, TOKEN)
        self.url = url.rstrip("/")
        self._settings = settings
        try:
            self._client = LabelStudio(base_url=self.url, api_key=token, timeout=settings.timeout_seconds)
        except ApiError:  # the SDK reads in a personal access token itself that it has expired
            raise self._refused() from None
        self._people: dict[int, str] = {}

    def request(self, method: str, path: str, *, params: Any = None, body: Any = None, again: bool = True) -> Any:
        """Send one request and return its JSON (None for an empty answer).

        ``again``: whether it may be sent twice (not an import, which would double its tasks). Raises
        :class:`ServerError` when the server is down, busy or answers with something else than JSON,
        :class:`SettingsError` when it refuses the token, :class:`NotThere` for what it does not have,
        :class:`InputError` for what it does not accept.
        """
        pause = self._settings.retry_seconds
        tries = self._settings.retries + 1 if again else 1
        for attempt in range(tries):
            last = attempt == tries - 1
            try:
                answer = self._client._client_wrapper.httpx_client.request(
                    path, method=method, params=params, json=body, request_options={"max_retries": 0}
                )
            except ApiError as error:  # the exchange of a personal access token failed
                if error.status_code in (401, 403):
                    raise self._refused() from None
                problem = f"answered {error.status_code}"
            except (httpx.HTTPError, OSError) as error:
                problem = f"could not be reached ({type(error).__name__})"
            else:
                if answer.status_code in (401, 403):
                    raise self._refused()
                if answer.status_code == 404:
                    raise NotThere(f"{self.url} has no {path}.")
                if answer.status_code < 300:
                    if not answer.content:
                        return None
                    try:
                        return answer.json()
                    except ValueError:
                        problem = (
                            "answered with a page instead of data: it may be starting, or half way through an upgrade"
                        )
                elif answer.status_code < 500 and answer.status_code not in _ABOUT_TO_ANSWER:
                    raise InputError(f"{self.url} did not accept {method} {path}: {_detail(answer)}")
                else:
                    problem = f"answered {answer.status_code}: it may be overloaded, or half way through an upgrade"
            if not last:
                time.sleep(pause)
                pause *= 2
        tried = f"tried {tries} times" if tries > 1 else "tried once"
        raise ServerError(
            f"The Label Studio server {self.url} {problem} ({tried}). Nothing is lost: run the same command again "
            "when it is up."
        )

    def _refused(self) -> SettingsError:
        return SettingsError(
            f"{self.url} refused the token: it is wrong or has expired, or its kind is switched off there. Make a new "
            f"one under {self.url}/user/account and set {TOKEN} to it."
        )

    # Tasks

    def tasks(self, project: int, include: Sequence[str], since: str | None = None) -> Iterator[dict[str, Any]]:
        """Yield a project's tasks with the fields of ``include`` (``id`` among them), ordered by id.

        ``since``: only those updated after this time (ISO 8601). Pages begin after the last id seen, not at a number of
        rows, so tasks that are deleted meanwhile make none of the others be skipped.
        """
        params = {
            "project": project,
            "fields": "all",
            "include": ",".join(include),
            "resolve_uri": "false",
            "page_size": self._settings.page_tasks,
            "page": 1,
        }
        conditions = [] if since is None else [_condition("tasks:updated_at", "greater", since, "Datetime")]
        last = 0
        while True:
            items = [*conditions, _condition("tasks:id", "greater", last, "Number")]
            query = {"filters": {"conjunction": "and", "items": items}, "ordering": ["tasks:id"]}
            tasks_page = self.request("GET", "api/tasks", params={**params, "query": json.dumps(query)})["tasks"]
            yield from tasks_page
            if len(tasks_page) < self._settings.page_tasks:
                return
            last = max(task["id"] for task in tasks_page)

    def newest_change(self, project: int) -> str | None:
        """Return when a task of the project was last updated (ISO 8601), or None where it has no task."""
        params = {"project": project, "include": "id,updated_at", "page_size": 1, "page": 1}
        query = {"ordering": ["-tasks:updated_at"]}
        tasks = self.request("GET", "api/tasks", params={**params, "query": json.dumps(query)})["tasks"]
        return tasks[0]["updated_at"] if tasks else None

    # People

    def email(self, number: int | None) -> str:
        """Return the e-mail of an account; ``user-7`` where the server names it no more."""
        if number is None:
            return "unknown"
        if number not in self._people:
            self._people.update({person["id"]: person["email"] for person in self.request("GET", "api/users")})
            self._people.setdefault(number, f"user-{number}")
        return self._people[number]


class NotThere(InputError):
    """What was asked for does not exist on the server."""


def connect(workspace: Path, settings: Review, url: str | None = None, token: str | None = None) -> Server:
    """Return the server, after checking that it answers and takes the token.

    ``url``: any Label Studio server; without it, the workspace's local one. The token comes from
    ``LABEL_STUDIO_API_KEY``, or for the local server from its account file. Raises as :meth:`Server.request` does.
    """
    account = stored_account(workspace)
    local = account is not None and (url is None or url.rstrip("/") == account.url)
    if url is None:
        if account is None:
            raise SettingsError(
                "There is no local server yet. Start one in another terminal (quit review serve), or name a server: "
                "--url URL."
            )
        url = account.url
    if not url.startswith(("http://", "https://")):
        raise SettingsError(f"--url {url!r} is no address. Write it as https://labels.example.org.")
    token = token or (account.token if local and account else None) or os.environ.get(TOKEN)
    if not token:
        raise SettingsError(
            f"{url} needs a token. Copy one from {url.rstrip('/')}/user/account and set the variable {TOKEN}."
        )
    server = Server(url, token, settings)
    server.request("GET", "api/current-user/whoami")
    return server


def _condition(column: str, operator: str, value: Any, kind: str) -> dict[str, Any]:
    return {"filter": f"filter:{column}", "operator": operator, "type": kind, "value": value}


def _detail(answer: httpx.Response) -> str:
    try:
        reason = answer.json()
    except ValueError:
        return f"code {answer.status_code}"
    if isinstance(reason, dict):
        reason = reason.get("validation_errors") or reason.get("detail") or reason
    return shown(str(reason))
