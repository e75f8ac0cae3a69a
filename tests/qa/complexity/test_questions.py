"""Questions whose complexity is asked for: bad files are named by line."""

from pathlib import Path

import pytest

from quit.errors import InputError
from quit.qa.complexity.questions import ComplexityQuestion, questions_of, read_questions
from quit.qa.opening import questions
from tests.qa.complexity.test_retrieval_complexity import DOCUMENTS, QUERIES
from tests.qa.scripted import SmallCollection

GOOD = '{"id": 7, "question": "Who?", "answers": ["x"], "hops": 2}\n'


@pytest.mark.parametrize(
    ("text", "named"),
    [(GOOD + "{", "line 2"), (GOOD + '{"id": 1}', "line 2"),
     (GOOD + '{"id": null, "question": "q", "answers": ["a"]}', "with id"),
     (GOOD + '{"id": 1, "question": "q", "answers": []}', "answers"), (GOOD + "[]", "line 2"),
     (GOOD + '{"id": 1, "question": "q", "answers": ["a"], "hops": "2"}', "hops"),
     *((GOOD + f'{{"id": 1, "question": "q", "answers": ["a"], "hops": {hops}}}', "line 2.*hops .*0 to 32,767")
       for hops in ("32768", "-1", "2.0", "true", "1e400")),
     (GOOD + '{"id": 1, "question": "q", "answers": ["a"], "complex": 1}', "complex"),
     (GOOD + GOOD, "line 2: the id '7' occurs twice"), ("\n", "holds nothing")],
)  # fmt: skip
def test_bad_question_files_name_the_line(tmp_path: Path, text: str, named: str) -> None:
    path = tmp_path / "q.jsonl"
    with pytest.raises(InputError, match="does not exist; expected JSON Lines of questions"):
        read_questions(path)
    path.write_text(text)
    with pytest.raises(InputError, match=named):
        read_questions(path)
    path.write_text(GOOD + '{"id": 8, "text": "q", "answers": ["a"], "group": null}\n')  # null: a group by itself
    assert read_questions(path) == [
        ComplexityQuestion("7", "Who?", ("x",), 2, None, "7"),
        ComplexityQuestion("8", "q", ("a",), None, None, "8"),
    ]


def test_nothing_to_ask() -> None:
    with pytest.raises(InputError, match="None of the questions has an answer"):
        questions_of(questions(SmallCollection(DOCUMENTS, QUERIES[3:], {})))
