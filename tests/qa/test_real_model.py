"""SUNAR and bandits ask a language model on a real vLLM: counts that add up, shapes, and that a second run asks
nothing."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from quit.models.factory import Models
from quit.models.prompting import load_prompt
from quit.qa.bandits.arms import decompositions_of
from quit.qa.bandits.picked import FULL, reports
from quit.qa.bandits.requests import measure
from quit.qa.opening import Opened, language_model, questions
from quit.qa.settings import QaSettings, parse
from quit.qa.sunar.assembly import Assembly
from quit.qa.sunar.queries import Query
from quit.qa.sunar.reading import COUNTS, Asker, LanguageModelAnswers
from quit.qa.sunar.retrieval import SearchStack
from quit.qa.sunar.run import Run, trace_path
from quit.qa.sunar.scores import scores
from quit.qa.sunar.variants import effective
from tests.qa.bandits.test_arms import DOCUMENTS, QRELS, QUERIES
from tests.qa.scripted import SmallCollection, WordOverlap, plain
from tests.qa.sunar.test_system import TEXTS
from tests.servers.builds import served
from tests.servers.vllm import VllmServer

pytestmark = pytest.mark.slow
NAME = "smol"


def _settings(server: VllmServer, **sections: dict[str, Any]) -> QaSettings:
    return parse(served(server.base_url, NAME, reader={"model": server.name}, **sections))


def _answered(server: VllmServer) -> int:
    """Return how many requests the server has answered so far."""
    return int(server.metrics()["request_success"])


@pytest.mark.parametrize("variant", ["sunar", "react-first", "searchain-first", "ircot"])
def test_sunar(real_model: VllmServer, variant: str, tmp_path: Path) -> None:
    sunar = {"language_model": NAME, "m": 2, "c": 2, "b": 2, "top": 2, "max_tokens": 32, "max_hops": 2}
    settings = _settings(real_model, sunar=sunar)
    how = effective(settings.sunar, variant)
    if how.retrieval == "nar":
        how = how.model_copy(update={"retrieval": "rerank"})
    query = Query("q", "Where was the author of Ivanhoe born?", ("Edinburgh",), relevant={"d0": 1, "d1": 1})

    def trace(folder: Path) -> bytes:
        assembly = Assembly(settings, Models(settings))
        stage = WordOverlap(plain(TEXTS))
        system, identity = assembly.system(SearchStack(plain(TEXTS), stage, None, stage), how)
        run = Run(folder, {"identity": identity})
        run.work(system, [query], 1)
        return trace_path(run.path, "q").read_bytes()

    before = _answered(real_model)
    first = trace(tmp_path / "one")
    requests = _answered(real_model) - before
    written = json.loads(first)
    replies = written["replies"]
    assert set(replies) == set(COUNTS) and 0 < replies["calls"] >= requests  # variants share some replies
    assert replies["completion_tokens"] <= 32 * replies["calls"] and replies["cut"] <= replies["calls"]
    assert written["prediction"] and len(written["steps"]) <= 2
    figures = scores([written])["replies"]
    assert figures["unread"] == replies["unread"] + figures["unread_plans"] + figures["unread_mer"] <= replies["calls"]
    assert sum(figures["ended"].values()) == sum(figures["prediction_from"].values()) == 1
    assert trace(tmp_path / "two") == first and _answered(real_model) - before == requests


def test_decompositions_reports_and_judged_documents(real_model: VllmServer) -> None:
    bandit = {"arms": 4, "attempts": 2, "decompositions": 1, "documents": 3}
    settings = _settings(real_model, bandits=bandit, reports={"max_new_tokens": 48})
    collection = SmallCollection(DOCUMENTS, QUERIES, QRELS)
    generator = language_model(NAME, Models(settings), settings, "bandits.language_model")
    given, stage = questions(collection), WordOverlap(collection)
    arms, counts = decompositions_of("written", given, collection, stage, settings, generator)
    assert counts["decompositions"] == len(arms) == 2
    # Two prompts a request, each asked twice at most; a request of which nothing can be read is its own arm.
    assert 4 <= counts["replies"] <= 8 and counts["unread"] <= counts["replies"] >= counts["cut"]
    alone = [part for part in arms if part.arms == (part.question.text,)]
    assert len(alone) == counts["without_sub_queries"] and all(len(part.arms) <= 4 for part in arms)
    opened = Opened(collection, stage, Models(settings), np.zeros((len(DOCUMENTS), 4), dtype=np.float32))  # type: ignore
    measured = measure(opened, given, "written", "judge", settings, generator)
    assert set(np.unique(np.concatenate([request.observed for request in measured.requests]))) <= {0.0, 1.0}
    verdicts = measured.about["relevance_verdicts"]
    assert verdicts["unread"] <= verdicts["verdicts"] == sum(len(request.pool) for request in measured.requests)
    first = replace(measured, requests=measured.requests[:1], questions=given[:1])

    scored = reports(first, [None], 1.0, settings)
    before = _answered(real_model)
    assert reports(first, [None], 1.0, settings) == scored
    assert _answered(real_model) == before
    [(policy, _, report)] = scored
    citations = sum(len(sentence.cited) for sentence in report.sentences)
    assert policy == FULL and report.citations == citations >= report.invented
    assert report.verdicts == (citations - report.invented + 2 if report.text else 0) >= report.unread


def test_a_prompt_that_is_too_long_has_no_answer(real_model: VllmServer) -> None:
    settings = _settings(real_model, sunar={"language_model": NAME, "max_tokens": 8})
    generator = language_model(NAME, Models(settings), settings, "sunar.language_model")
    reader = LanguageModelAnswers(Asker(generator, load_prompt("sub_answer"), settings.sunar))
    assert reader.answer("Who?", ["word " * 20_000]) == "NO ANSWER"
