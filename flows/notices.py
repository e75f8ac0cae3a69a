"""Tell people of a failed or crashed run: a webhook, or any notification block of Prefect. A notice never carries a
secret."""

from __future__ import annotations

import json
import os
import urllib.request
from typing import Any

from prefect.blocks.abstract import NotificationBlock
from prefect.blocks.core import Block
from prefect.blocks.notifications import AbstractAppriseNotificationBlock
from prefect.logging.loggers import flow_run_logger
from prefect.utilities.urls import url_for
from pydantic import Field, SecretStr, ValidationError

from quit.common.endpoints import address
from quit.errors import QuitError
from quit.settings import Limits
from quit.text.secrets import without_secrets

_SECONDS = 20
"""How long a webhook may take to answer."""


class QuitMail(AbstractAppriseNotificationBlock):
    """E-mail over SMTP for `quit serve`: register it with `prefect block register -m quit.flows.notices`."""

    _block_type_name = "QUIT mail"
    _block_type_slug = "quit-mail"

    url: SecretStr = Field(
        title="Mail URL",
        description="mailtos://user:password@smtp.example.org?from=quit@example.org&to=team@example.org (Apprise's "
        "mail URLs)",
    )


def notice(flow: Any, flow_run: Any, state: Any) -> dict[str, str]:
    """Return the facts of a failed run: every value is a text without secrets."""
    parameters = flow_run.parameters or {}
    error = state.message or ""
    return {
        "flow": flow.name,
        "run": flow_run.name,
        "run_id": str(flow_run.id),
        "workspace": str(parameters.get("workspace") or parameters.get("release") or ""),
        "state": state.name or str(state.type),
        "error": without_secrets(error, [str((parameters.get("limits") or {}).get("webhook_env"))]),
        "what_to_do": _advice(state),
        "url": address(url_for("flow-run", flow_run.id) or ""),
    }


def tell(flow: Any, flow_run: Any, state: Any) -> None:
    """Flow hook: send the notice where the run's limits say. A notice that cannot be sent is a line in the run's log,
    no more."""
    try:
        limits = Limits.model_validate((flow_run.parameters or {}).get("limits") or {})
    except ValidationError:
        return
    logger = flow_run_logger(flow_run, flow)
    message = notice(flow, flow_run, state)
    if limits.webhook_env:
        url = os.environ.get(limits.webhook_env)
        if not url:
            logger.error(
                "No notice sent: the environment variable %s is not set where this run works.", limits.webhook_env
            )
        else:
            _send(logger, f"the webhook in {limits.webhook_env}", lambda: _post(url, message))
    if limits.block:
        _send(logger, f"the block {limits.block}", lambda: _notify(limits.block, message))


def _send(logger: Any, where: str, send: Any) -> None:
    try:
        send()
        logger.info("Notice of this failure sent to %s.", where)
    except Exception as error:  # whatever a notice meets, the run's own failure is what counts
        logger.error("No notice sent to %s: %s", where, without_secrets(f"{type(error).__name__}: {error}"))


def _post(url: str, message: dict[str, str]) -> None:
    if not url.startswith(("http://", "https://")):
        raise ValueError("it does not begin with http:// or https://")
    body = json.dumps({**message, "text": as_text(message)}).encode()  # `text` is what Slack, Mattermost and Teams show
    request = urllib.request.Request(url, body, {"Content-Type": "application/json", "User-Agent": "quit"})
    with urllib.request.urlopen(request, timeout=_SECONDS):
        pass


def _notify(slug: str, message: dict[str, str]) -> None:
    block = Block.load(slug, _sync=True)  # type: ignore[call-arg]
    if not isinstance(block, NotificationBlock):
        raise ValueError("it is not a notification block")
    with block.raise_on_failure():
        block.notify(  # type: ignore[unused-coroutine]  # no coroutine where there is no event loop
            as_text(message), subject=f"QUIT: {message['flow']} {message['state'].lower()}: {message['workspace']}"
        )


def as_text(message: dict[str, str]) -> str:
    """Return a notice as lines for people."""
    lines = [
        f"The run {message['run']} of {message['flow']} on {message['workspace'] or 'no workspace'}: "
        f"{message['state']}.",
        *(message[name] for name in ("error", "what_to_do", "url")),
    ]
    return "\n".join(line for line in lines if line)


def _advice(state: Any) -> str:
    if state.is_crashed():
        return (
            "The process ended (killed, out of memory, machine restarted). What is done stays done; "
            "the next run resumes there."
        )
    if state.name == "TimedOut":
        return "What is done stays done; the next run resumes there. Raise timeout_seconds if it takes that long."
    for kind in QuitError.__subclasses__():
        if f"{kind.__name__}:" in (state.message or ""):
            return (kind.__doc__ or "").strip().splitlines()[0]
    return "See the run's log. A run is safe to repeat: what is done stays done."


HOOKS: dict[str, Any] = {"on_failure": [tell], "on_crashed": [tell]}
"""Give these to ``@flow``."""
