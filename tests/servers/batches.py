"""OpenAI's batch endpoints in this process: batches end when the test says so, and fail as it says."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from email import message_from_bytes
from typing import Any

from tests.servers.serving import serving

Outcome = Callable[[int, Any], str]
"""(number of the batch, body of a request) -> its reply's text, or ``content_filter``, ``expired``, ``500``,
``400`` or ``400 content_filter`` (a refused prompt)."""
_EXPIRED = {"code": "batch_expired", "message": "it took too long"}
_REFUSED = {"error": {"message": "Unsupported parameter: 'seed'", "type": "invalid_request_error"}}
REFUSED_PROMPT = {
    "message": "The prompt triggered the content management policy.",
    "param": "prompt",
    "code": "content_filter",
    "status": 400,
    "innererror": {"code": "ResponsibleAIPolicyViolation"},
}
"""Azure's error."""


class BatchServer:
    """``charged``: prompt -> how often a reply was made for it, which is what costs; ``batches``: in the order made;
    ``key``: the header that may ask for one; None: anyone may."""

    def __init__(self, outcome: Outcome) -> None:
        self.outcome = outcome
        self.files: dict[str, bytes] = {}
        self.batches: list[dict[str, Any]] = []
        self.charged: Counter[str] = Counter()
        self.base_url = ""
        self.key: str | None = None

    def end_batches(self) -> None:
        """End all batches that have not ended."""
        for number, batch in enumerate(self.batches):
            if batch["status"] == "in_progress":
                rows = [self._row(number, json.loads(line)) for line in self.files[batch["input_file_id"]].splitlines()]
                batch["status"] = "expired" if any(row["error"] for row in rows) else "completed"
                for kind, good in (("output_file_id", True), ("error_file_id", False)):
                    mine = [row for row in rows if ((row["response"] or {}).get("status_code") == 200) is good]
                    if mine:
                        batch[kind] = f"{kind}-{number}"
                        self.files[batch[kind]] = "\n".join(map(json.dumps, mine)).encode()

    def _row(self, number: int, line: dict[str, Any]) -> dict[str, Any]:
        result, body = self.outcome(number, line["body"]), line["body"]
        row: dict[str, Any] = {"id": "r", "custom_id": line["custom_id"], "response": None, "error": None}
        if result == "expired":
            return row | {"error": _EXPIRED}
        if result in ("400", "500"):
            return row | {"response": {"status_code": int(result), "body": _REFUSED}}
        if result == "400 content_filter":
            return row | {"response": {"status_code": 400, "body": {"error": REFUSED_PROMPT}}}
        self.charged[body["messages"][-1]["content"]] += 1
        message = {"role": "assistant", "content": result}
        usage = {"prompt_tokens": 100, "completion_tokens": 2, "total_tokens": 102}
        choices = [{"index": 0, "finish_reason": result if result == "content_filter" else "stop", "message": message}]
        reply = {"object": "chat.completion", "model": body["model"], "choices": choices, "usage": usage}
        return row | {"response": {"status_code": 200, "request_id": "q", "body": reply}}

    def answer(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> tuple[int, bytes, Any]:
        """Answer a request."""
        if method == "POST" and path == "/v1/files":
            form: Any = message_from_bytes(f"Content-Type: {headers['Content-Type']}\r\n\r\n".encode() + body)
            parts = {part.get_param("name", header="content-disposition"): part for part in form.get_payload()}
            assert parts["purpose"].get_payload() == "batch"
            name = f"file-{len(self.files)}"
            self.files[name] = parts["file"].get_payload(decode=True)
            return 200, json.dumps({"id": name, "object": "file", "purpose": "batch"}).encode(), {}
        if method == "POST" and path == "/v1/batches":
            wanted = json.loads(body)
            assert wanted["endpoint"] == "/v1/chat/completions" and wanted["completion_window"] == "24h"
            batch = {"id": f"batch_{len(self.batches)}", "object": "batch", "status": "in_progress", **wanted}
            self.batches.append(batch)
            return 200, json.dumps(batch).encode(), {}
        if path.startswith("/v1/batches?"):
            return 200, json.dumps({"object": "list", "data": self.batches[::-1], "has_more": False}).encode(), {}
        visible = self.key in (None, headers.get("Authorization"))
        if visible and (named := re.fullmatch(r"/v1/batches/batch_(\d+)", path)):
            return 200, json.dumps(self.batches[int(named[1])]).encode(), {}
        if (named := re.fullmatch(r"/v1/files/(.+)/content", path)) and named[1] in self.files:
            return 200, self.files[named[1]], {}
        return (200, b'{"data": [{"id": "m"}]}', {}) if path == "/v1/models" else (404, b"{}", {})


@contextmanager
def batch_server(outcome: Outcome) -> Iterator[BatchServer]:
    """Serve until the end of the block."""
    server = BatchServer(outcome)
    with serving(server.answer) as url:
        server.base_url = f"{url}/v1"
        yield server
