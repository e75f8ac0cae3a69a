"""A whole build through real vLLM servers, killed twice and resumed, with what it cost counted on the servers' side.

``python -m benchmarks.vllm_build wikihint:FILE --out DIR``: three differently made tiny models label, a fourth judges.
The models are taught (see ``tests/servers/checkpoints.py``), so that some answers are right; what is measured is the
pipeline, not them. ``--compare`` builds once more, undisturbed and with an empty generation cache, and compares every
table's bytes.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.compute as pc

from quit.engine.workspace import Workspace
from quit.models.prompting import load_prompt
from quit.sources import parse_source, read_source
from tests.comparing import files_of
from tests.servers.builds import kept_replies, kill_when, start_build, write_profile
from tests.servers.checkpoints import Lesson, Shape, checkpoint
from tests.servers.vllm import VllmServer

MODELS = {
    "llama-small": ("llama", 11, Shape()),
    "llama-wide": ("llama", 12, Shape(hidden=384, heads=6)),
    "qwen-small": ("qwen3", 13, Shape()),
}


def reading_lessons(questions: Sequence[Mapping[str, Any]], reader: int) -> list[Lesson]:
    """Return lessons for a reader: three passages a question, told to be right, wrong or NO ANSWER by a hash.

    ``questions``: mappings with ``question``, ``answers`` and ``hints``. Other readers get other replies.
    """
    template = load_prompt("reader")
    lessons: list[Lesson] = []
    for place, row in enumerate(questions):
        other = questions[(place + 1) % len(questions)]
        for hints in (row["hints"][:1], row["hints"][:3], row["hints"][4::-1]):
            draw = hashlib.sha256(f"{reader} {len(hints)} {row['question']}".encode()).digest()[0] % 4
            reply = (row["answers"][0], row["answers"][0], other["answers"][0], "NO ANSWER")[draw]
            lessons.append((template.messages({"context": " ".join(hints), "question": row["question"]}), reply))
    return lessons


def judging_lessons(questions: Sequence[Mapping[str, Any]]) -> list[Lesson]:
    """Return lessons for a judge: each question's neighbour's answer is wrong, its own answer written out longer is
    right."""
    template = load_prompt("judge")
    lessons: list[Lesson] = []
    for place, row in enumerate(questions):
        gold, other = row["answers"][0], questions[(place + 1) % len(questions)]["answers"][0]
        for candidate, reply in ((f"the {gold} itself", "Yes"), (other, "No")):
            lessons.append(
                (template.messages({"question": row["question"], "answer": gold, "candidate": candidate}), reply)
            )
    return lessons


def main() -> None:
    """Run it and print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source", help="KIND:FILE, such as wikihint:test.json")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--concurrency", type=int, default=1)
    parser.add_argument(
        "--kills", type=float, nargs="*", default=[0.15, 0.6], help="shares of the replies at which to kill"
    )
    parser.add_argument("--compare", action="store_true")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    records = [record.question for record in read_source(parse_source(options.source))]
    rows = [
        {"question": one.question, "answers": list(one.answers), "hints": [hint.text for hint in one.hints]}
        for one in records
        if one is not None
    ]
    if not rows:
        raise SystemExit(f"{options.source} holds no usable question")
    with ExitStack() as stack:
        servers = {
            name: stack.enter_context(
                VllmServer(
                    checkpoint(style, seed, shape=shape, lessons=reading_lessons(rows, seed)),
                    name,
                    cache_tokens=16384,
                )
            )
            for name, (style, seed, shape) in MODELS.items()
        }
        judge = VllmServer(checkpoint("llama", 14, lessons=judging_lessons(rows)), "judge", cache_tokens=8192)
        stack.enter_context(judge)
        urls = {name: server.base_url for name, server in {**servers, "judge": judge}.items()}
        there = {name: {"kind": "server", "server": name, "model": name} for name in urls}
        reader = {"role": "labeler", "template_options": {"enable_thinking": False}}
        sections = {
            "readers": [{"name": name, **reader, **there[name]} for name in servers],
            "judge": {"name": "judge", "constrained": True, **there["judge"]},
            "servers": [{"name": n, "base_urls": [urls[n]], "concurrency": options.concurrency} for n in urls],
            "split": {"method": "share"},
            "run": {"shard_questions": 5, "workers": 1},
        }
        profile = write_profile(options.out / "profile.toml", sections)
        every = [*servers.values(), judge]
        found = _run(options, profile, every, rows)
        if options.compare:
            found |= _compare(options, profile, every)
    print(json.dumps(found, indent=2))


def _reached(cache: Path, replies: float) -> bool:
    return kept_replies(cache) >= replies


def _run(options: argparse.Namespace, profile: Path, servers: list[VllmServer], rows: list) -> dict:
    workspace, cache = options.out / "killed", options.out / "cache"
    expected = len(rows) * (325 + 3) * len(MODELS)
    began = time.monotonic()
    kills = []
    for share in options.kills:
        process = start_build(workspace, profile, options.source, cache)
        if kill_when(process, partial(_reached, cache, share * expected), seconds=7200):
            kills.append(kept_replies(cache))
    process = start_build(workspace, profile, options.source, cache)
    if process.wait() != 0:
        raise SystemExit(workspace.with_name("killed.log").read_text()[-2000:])
    opened = Workspace.open(workspace)
    passages, answers = opened.read("passages"), opened.read("answers")
    key = ["question_id", "permutation"]
    once = all(
        answers.filter(pc.equal(answers.column("reader"), name)).select(key).equals(passages.select(key))
        for name in MODELS
    )
    metrics = [server.metrics() for server in servers]
    return {
        "questions": len(passages) // 325,
        "passages": len(passages),
        "answers": len(answers),
        "every_passage_once": once,
        "killed_after_replies": kills,
        "replies_kept": kept_replies(cache),
        "requests_answered_by_servers": sum(one.get("request_success", 0.0) for one in metrics),
        "prompt_tokens": sum(one.get("prompt_tokens", 0.0) for one in metrics),
        "prompt_tokens_computed": sum(one["prompt_tokens_computed"] for one in metrics),
        "seconds": round(time.monotonic() - began, 1),
    }


def _compare(options: argparse.Namespace, profile: Path, servers: list[VllmServer]) -> dict:
    began = time.monotonic()
    workspace = options.out / "undisturbed"
    process = start_build(workspace, profile, options.source, options.out / "cache-2")
    if process.wait() != 0:
        raise SystemExit(workspace.with_name("undisturbed.log").read_text()[-2000:])
    same = files_of(workspace / "tables", "*.parquet") == files_of(options.out / "killed" / "tables", "*.parquet")
    return {"same_bytes": same, "undisturbed_seconds": round(time.monotonic() - began, 1)}


if __name__ == "__main__":
    main()
