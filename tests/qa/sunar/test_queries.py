"""Questions of a corpus and of files, good and bad."""

from pathlib import Path

import pytest

from quit.errors import InputError
from quit.qa.opening import questions
from quit.qa.sunar.queries import Query, of_corpus, of_file
from tests.qa.scripted import SmallCollection
from tests.rows import cases


def _own(qrels: dict[str, dict[int, int]]) -> list[Query]:
    whole = {"query_id": "m:1", "text": "whole?", "answers": ["A"], "kind": "2hop"}
    steps = [
        {"query_id": f"m:1-s{hop}", "text": text, "answers": ["A"], "parent_id": "m:1", "hop": hop, "kind": "2hop"}
        for hop, text in ((2, "two?"), (1, "one?"))
    ]
    collection = SmallCollection([("", "one"), ("", "two"), ("", "three")], [whole, *steps], qrels)
    return of_corpus(collection, questions(collection))


def test_questions_of_a_corpus_and_of_a_file_that_leans_on_it(tmp_path: Path) -> None:
    """A corpus's parts are in the order of their hops."""
    relevant = _own({"m:1": {0: 1, 1: 0}, "m:1-s1": {2: 1}})
    assert relevant == [Query("m:1", "whole?", ("A",), ("one?", "two?"), {"d0": 1}, "2hop", (0,))]
    path = tmp_path / "q.jsonl"
    path.write_text('{"id": "m:1"}\n\n{"_id": 7, "question": " a  b? ", "answer": "C", "sub_questions": ["s"]}\n')
    assert of_file(path, relevant) == [relevant[0], Query("7", "a b?", ("C",), ("s",))]
    path.write_text(r'{"id": "\ud83d\ude00", "text": "a \\ud800?"}')  # a pair, and six characters
    assert of_file(path) == [Query("\U0001f600", "a \\ud800?")]


@pytest.mark.parametrize(("text", "said"), cases(__file__, "bad_queries.jsonl"))
def test_a_bad_file_of_questions_is_said_line_by_line(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "q.jsonl"
    path.write_text(text)
    with pytest.raises(InputError, match=said):
        of_file(path)
    with pytest.raises(InputError, match="absent.jsonl does not exist"):
        of_file(tmp_path / "absent.jsonl")
