"""A hub for tests: what huggingface_hub asks for when a repository is made and a folder uploaded, over real HTTP."""

import base64
import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from tests.servers.serving import serving

TOKEN = "hf_right0123456789abcdef"


class Hub:
    """Repositories by name: ``private``, ``files`` (path -> bytes) and ``tags`` (name -> files of its commit).
    ``asked``: method and path of every request. ``failing``: the status that it answers to every request, or to those
    with ``failing_at`` in their path, after ``failing_after`` of these. ``head``: the commit that others have made."""

    def __init__(self) -> None:
        self.repositories: dict[str, dict[str, Any]] = {}
        self.asked: list[tuple[str, str]] = []
        self.failing = 0
        self.failing_at = ""
        self.failing_after = 0
        self.head = "1" * 40
        self.address = ""

    def answer(self, method: str, path: str, token: str, body: bytes) -> tuple[int, Any]:
        """Return status and JSON of a reply."""
        self.asked.append((method, path))
        asked = sum(self.failing_at in each for _, each in self.asked)
        if self.failing and self.failing_at in path and asked > self.failing_after:
            return self.failing, {"error": f"no, {token}"}
        if path == "/api/validate-yaml":
            return 200, {"errors": [], "warnings": []}
        if token != TOKEN:
            return 401, {"error": f"Invalid token {token}"}
        if path == "/api/repos/create":
            return self._create(json.loads(body))
        repository = "/".join(path.removeprefix("/api").removeprefix("/datasets/").split("/")[:2])
        if repository.startswith("closed/"):
            return 403, {"error": "Forbidden"}
        files, tags = self.repositories[repository]["files"], self.repositories[repository].setdefault("tags", {})
        if "/resolve/" in path:
            revision, _, name = path.partition("/resolve/")[2].partition("/")
            files = tags.get(revision, files)
            return (200, files[name]) if name in files else (404, {"error": "Entry not found"})
        action = path.removeprefix(f"/api/datasets/{repository}").strip("/")
        if action == "refs":
            refs = [{"name": tag, "ref": f"refs/tags/{tag}", "targetCommit": "1" * 40} for tag in tags]
            return 200, {"branches": [], "converts": [], "tags": refs}
        if action.startswith("tag/"):
            assert action == "tag/" + "1" * 40, "the commit, not what may be main by now"
            tags[json.loads(body)["tag"]] = dict(files)
            return 200, {}
        if method == "GET" and action.startswith("tree"):
            files = tags.get(action.removeprefix("tree/"), files)
            entry = {"type": "file", "oid": "0" * 40}
            return 200, [{**entry, "path": name, "size": len(data)} for name, data in files.items()]
        if method == "GET":
            siblings = [{"rfilename": name} for name in files]
            about = {"id": repository, "sha": "1" * 40, "private": self.repositories[repository]["private"]}
            return 200, {**about, "siblings": siblings}
        if action.startswith("preupload"):
            mode = {"uploadMode": "regular", "shouldIgnore": False}
            return 200, {"files": [{**mode, "path": file["path"]} for file in json.loads(body)["files"]]}
        for line in body.decode().splitlines():
            if json.loads(line)["value"].get("parentCommit", self.head) != self.head:
                return 412, {"error": "A commit has happened since."}
            self._commit(files, json.loads(line))
        return 200, {"commitUrl": f"{self.address}/datasets/{repository}/commit/1", "commitOid": "1" * 40}

    def _create(self, request: dict[str, Any]) -> tuple[int, Any]:
        repository = f"{request['organization']}/{request['name']}"
        if request["organization"] == "closed":
            return 403, {"error": "Forbidden"}
        exists = repository in self.repositories
        self.repositories.setdefault(repository, {"private": request["visibility"] == "private", "files": {}})
        return (409 if exists else 200), {"url": f"{self.address}/datasets/{repository}"}

    @staticmethod
    def _commit(files: dict[str, bytes], line: dict[str, Any]) -> None:
        value = line["value"]
        if line["key"] == "file":
            files[value["path"]] = base64.b64decode(value["content"])
        elif line["key"] == "deletedFile":
            del files[value["path"]]


@contextmanager
def hub() -> Iterator[Hub]:
    """Serve a hub on a free port of this machine."""
    served = Hub()

    def answer(method: str, path: str, headers: Mapping[str, str], body: bytes) -> tuple[int, bytes, dict[str, str]]:
        token = headers.get("Authorization", "").removeprefix("Bearer ")
        status, value = served.answer(method, path.partition("?")[0], token, body)
        content = value if isinstance(value, bytes) else json.dumps(value).encode()
        digest = hashlib.sha1(content).hexdigest()
        kind = {"Content-Type": "application/json", "ETag": f'"{digest}"', "X-Repo-Commit": "1" * 40}
        return status, content, kind | ({"X-Error-Code": "EntryNotFound"} if status == 404 else {})

    with serving(answer) as served.address:
        yield served
