"""Labels of passages that were retrieved from another corpus."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from quit.models.protocols import NO_ANSWER
from quit.qa.benchmark.passages import DocumentPassages
from quit.qa.benchmark.relabel import known_verdicts, label_retrieved, relabel
from quit.qa.benchmark.run import Runner, System
from quit.qa.benchmark.stages import CheckpointedTables
from quit.qa.benchmark.task import BenchmarkQuery, Task
from quit.retrieval.corpus import Corpus
from quit.retrieval.protocols import Ranking
from tests.answers import Reads, Rules
from tests.rows import write_lines


def _reads(replies: dict[str, str]) -> Reads:
    return Reads(lambda prompt, _: replies.get(" ".join(prompt.hints), "Wrong"))


def test_passages_of_another_corpus_are_relabelled(world, tmp_path: Path) -> None:
    texts = ["Lima it is.", "A capital.", "La Lima.", "Unsure.", "Known as right.", "Silent."]
    path = write_lines(tmp_path / "c.jsonl", ({"id": str(i), "text": text} for i, text in enumerate(texts)))
    queries = [
        BenchmarkQuery("q3", "Capital of Peru?", ("Lima",), ("Lima",)),
        BenchmarkQuery("q4", "Other?", ("x",), ("x",)),
    ]
    answers = {0: "LIMA", 2: "La Lima", 3: "Perhaps", 4: "Reviewed", 5: NO_ANSWER}
    readers = [_reads({texts[place]: answer for place, answer in answers.items()}),
               _reads({texts[1]: "la lima", texts[5]: NO_ANSWER})]  # fmt: skip
    judge = Rules({"La Lima": True, "Perhaps": None})
    verdicts = known_verdicts(world.dataset.verdicts)
    assert verdicts["q3", "lima"] is True and verdicts["q3", "wrong"] is False
    rows = [np.arange(6), np.array([], dtype=np.int64)]
    labels = relabel(queries, rows, DocumentPassages(Corpus(path)), readers, judge, {("q3", "reviewed"): True})
    # 0 equals gold; 1 by the second labeler; 2 by the judge; 3 could not be read; 4 by the release's verdict; 5 NO
    # ANSWER.
    assert labels == [{0: 2, 1: 2, 2: 2, 3: 0, 4: 2, 5: 0}, {}]
    # "La Lima" and "la lima" are one answer, judged once; gold, NO ANSWER and what is known cost nothing.
    assert sorted(item.candidate for item in judge.asked) == ["La Lima", "Perhaps", "Wrong"]
    assert {item.question_id for item in judge.asked} == {"q3"}


def test_passages_are_read_again_for_a_question_of_another_wording(world, tmp_path: Path) -> None:
    path = write_lines(tmp_path / "c.jsonl", [{"id": "1", "text": "A capital."}])
    labeler, queries = _reads({}), world.task.queries
    context = world.context(models=SimpleNamespace(reader=lambda *_: labeler, judge=Rules({})))
    runner = Runner(context, CheckpointedTables(tmp_path / "stages"), world.dataset)
    reworded = (replace(queries[0], question="Which one?"), *queries[1:])
    counts = []
    for questions in (queries, queries, reworded):
        task = Task("c", DocumentPassages(Corpus(path)), questions)
        label_retrieved(
            runner, task, [System(task, "x", "", "", "", [Ranking(np.zeros(1, dtype=int), np.zeros(1))] * 3)]
        )
        counts.append(len(labeler.asked))
    assert counts[0] == counts[1] and counts[2] == 2 * counts[0]
