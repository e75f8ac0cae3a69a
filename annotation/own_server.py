"""Starts the workspace's own Label Studio, where only the owner changes projects, tasks and others' work.

Label Studio gives every account every right. This file runs as a program of the server's own environment, which has
nothing of quit. Whoever is not the owner may read, and send what annotators need; all else is refused. Annotators'
home is the newest project's tasks, and every page has our head (``head.html``).
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

_ALLOWED = re.compile(
    r"/user/(login|signup|account)/?|/logout/?|/api/current-user/[\w-]+/?|/api/token/.*|/api/tasks/\d+/(annotations|drafts)/?"
    r"|/api/(tasks/\d+/)?annotations/(?P<annotation>\d+)/?(convert-to-draft|drafts)?/?"
    r"|/api/drafts/(?P<draft>\d+)/?|/api/users/(?P<user>\d+)/?(avatar)?/?"
)
"""Addresses; what a group of them names has to be the sender's own."""


_HEAD, _PAGE = (Path(__file__).with_name(name).read_text("utf-8") for name in ("head.html", "label_config.xml"))
_HEAD += f"<style>{_PAGE.partition('<Style>')[2].partition('</Style>')[0]}</style>"  # of pages without a task too


def ours(respond: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a middleware of Django that refuses what :func:`_may_send` does not allow, leads annotators to their tasks
    and adds our head to pages."""
    from django.http import HttpResponseRedirect, JsonResponse
    from projects.models import Project

    def answer(request: Any) -> Any:
        if request.method not in ("GET", "HEAD", "OPTIONS") and not _may_send(request):
            return JsonResponse({"detail": "Only the owner of this server may change this."}, status=403)
        if request.path_info in ("/", "/projects/") and request.user.is_authenticated and not _is_owner(request.user):
            for project in Project.objects.filter(tasks__isnull=False).order_by("-id")[:1]:
                return HttpResponseRedirect(f"/projects/{project.pk}/data?labeling=1")
        response = respond(request)
        if not response.streaming and response.get("Content-Type", "").startswith("text/html"):
            head = _HEAD.replace("NONCE", str(request.csp_nonce))
            response.content = response.content.replace(b"</head>", f"{head}</head>".encode(), 1)
        return response

    return answer


def _is_owner(user: Any) -> bool:
    return bool(getattr(user, "own_organization", None))


def _may_send(request: Any) -> bool:
    from jwt_auth.auth import TokenAuthenticationPhaseout
    from rest_framework.exceptions import APIException
    from tasks.models import Annotation, AnnotationDraft
    from users.models import User

    user = request.user
    with suppress(APIException):  # the view refuses the token
        user, _ = TokenAuthenticationPhaseout().authenticate(request) or (user, None)
    if _is_owner(user):
        return True
    path = request.path_info
    if re.fullmatch("/api/dm/actions/?", path):
        return request.GET.get("id") == "next_task"
    of_user = {
        "annotation": Annotation.objects.filter(completed_by=user.pk),
        "draft": AnnotationDraft.objects.filter(user=user.pk),
        "user": User.objects.filter(pk=user.pk),
    }
    allowed = _ALLOWED.fullmatch(path)
    if allowed is None or ("/annotations" in path and not _names_nobody_else(request.body, user.pk)):
        return False
    return all(of_user[what].filter(pk=number).exists() for what, number in allowed.groupdict().items() if number)


def _names_nobody_else(body: bytes, user: int) -> bool:
    try:
        return json.loads(body or b"{}").get("completed_by", user) == user
    except (ValueError, AttributeError):
        return False


if __name__ == "__main__":
    from django.conf import settings
    from label_studio import server

    sys.path.insert(0, server.LS_PATH)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "label_studio.core.settings.label_studio")
    settings.MIDDLEWARE.append("__main__.ours")
    server.main()
