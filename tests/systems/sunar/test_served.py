"""SUNAR with a real server's language model: its requests are understood, its replies paid for once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from quit.models.factory import Models
from quit.models.generation import GenerationCache
from quit.settings import parse
from quit.systems.sunar.assembly import Assembly
from quit.systems.sunar.queries import Query
from quit.systems.sunar.run import Run, trace_path
from quit.systems.sunar.variants import effective
from tests.systems.sunar.small import Shared, Texts
from tests.systems.sunar.test_system import TEXTS

pytestmark = pytest.mark.slow
M = 3


def _answered(vllm, folder: Path) -> bytes:
    """Answer one question by the served model, which was taught other lessons and rambles; return its trace."""
    settings = parse(
        {
            "sunar": {
                "language_model": "tiny",
                "retrieval": "rerank",
                "m": M,
                "c": 2,
                "b": 2,
                "max_tokens": 12,
                "max_hops": 2,
            },
            "servers": [{"name": "s", "base_urls": [vllm.base_url]}],
            "readers": [
                {
                    "name": "tiny",
                    "role": "reader",
                    "kind": "server",
                    "server": "s",
                    "model": vllm.name,
                    "template_options": {"enable_thinking": False},
                }
            ],
        }
    )
    assembly = Assembly(settings, Models(settings))
    library = assembly.library(Texts(TEXTS), Shared(TEXTS), None)
    system, identity = assembly.system(library, effective(settings.sunar, "as-set"))
    run = Run(folder, {"identity": identity})
    run.work(system, [Query("q", "Where was Walter Scott born?")], 1, lambda query: None)
    return trace_path(run.path, "q").read_bytes()


def test_a_served_model_is_asked_once_for_every_sample(vllm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUIT_CACHE", str(tmp_path / "cache"))
    first = _answered(vllm, tmp_path / "one")
    with GenerationCache() as cache:
        (known,) = cache.statistics()
        cache.export(tmp_path / "replies.jsonl")
    replies = [json.loads(line) for line in (tmp_path / "replies.jsonl").read_text().splitlines()]
    trace = json.loads(first)
    batches = sum(len(step["batches"]) for step in trace["steps"])
    answers = [reply for reply in replies if reply["prompt"].startswith("sub_answer@")]
    # Sample 0 is asked for twice: greedily for the answer, at a temperature for the batch.
    assert sorted({reply["sample"] for reply in answers}) == list(range(M))
    assert len(answers) == len(trace["steps"]) + M * batches
    assert {reply["prompt"].partition("@")[0] for reply in replies} == {
        "self_ask_musique",
        "sub_answer",
        "meta_reasoner_musique",
    }
    assert all(1 <= batch["s"] <= M for step in trace["steps"] for batch in step["batches"])
    again = _answered(vllm, tmp_path / "two")
    assert again == first
    with GenerationCache() as cache:
        assert cache.statistics()[0]["replies"] == known["replies"]
