"""A report by a real vLLM on CPU: a tiny model that was taught to write it, to judge it, and to ramble."""

from __future__ import annotations

from pathlib import Path

import pytest

from quit.models.factory import Models
from quit.models.prompting import load_prompt
from quit.settings import load
from quit.settings.bandits import Reports
from quit.systems.relevance import YesNo
from quit.systems.reports import NUGGET_FIELDS, REPORT_FIELDS, SUPPORT_FIELDS, ReportJudge, ReportWriter
from tests.servers.builds import write_profile
from tests.servers.checkpoints import checkpoint
from tests.servers.vllm import VllmServer
from tests.systems.test_reports import TASK

pytestmark = pytest.mark.slow
TEXT = "It is Lesotho [1]. Letsie III leads it [2]. It bakes [3]."


def lessons() -> list:
    """The report, three citations of which the last is wrong, and three nuggets: one held, one not, one that gets no
    verdict."""
    write, support, nugget = (load_prompt(name) for name in ("report", "report_support", "report_nugget"))
    documents = "\n\n".join(f"[{number}] {text}" for number, (_, text) in enumerate(TASK.documents, start=1))
    made = [(write.messages({"request": TASK.request, "documents": documents}), TEXT)]
    sentences = ("It is Lesotho.", "Letsie III leads it.", "It bakes.")
    for (_, document), sentence, said in zip(TASK.documents, sentences, ("Yes", "Yes", "No"), strict=True):
        made.append((support.messages({"document": document, "sentence": sentence}), said))
    for one, said in zip(TASK.nuggets, ("Yes", "No", "Hard to say"), strict=True):
        made.append((nugget.messages({"report": TEXT, "question": one.question, "answer": one.answer}), said))
    return made


def test_a_served_model_writes_and_judges(tmp_path: Path) -> None:
    with VllmServer(checkpoint("llama", 7, lessons=lessons()), "tiny", cache_tokens=16384) as server:
        profile = write_profile(
            tmp_path / "p.toml",
            {"reader-a": ("tiny", server.base_url)},
            ("tiny", server.base_url),
            template_options="{}",
        )
        settings = load(str(profile), []).settings
        generator = Models(settings).generator(settings.readers[0])
        own = Reports(max_new_tokens=64)
        [(text, cut)] = ReportWriter(generator, load_prompt("report", REPORT_FIELDS), own).write([TASK])
        support, nugget = load_prompt("report_support", SUPPORT_FIELDS), load_prompt("report_nugget", NUGGET_FIELDS)
        report = ReportJudge(YesNo(generator, support), YesNo(generator, nugget), own).score(TASK, text)
    assert (text, cut) == (TEXT, False)
    assert (report.citation_support, report.sentence_support) == (pytest.approx(2 / 3), pytest.approx(2 / 3))
    assert (report.nugget_coverage, report.unread, report.invented) == (pytest.approx(1 / 3), 1, 0)
