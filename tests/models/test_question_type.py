"""The question type classifier: the sources' spelling, the taxonomy, and answers that a person would give."""

import json

import pytest

from quit.errors import InputError
from quit.models.question_type import COARSE, FINE, PredictedType, QuestionTypeClassifier, from_trec
from tests.rows import cases

CASES = cases(__file__, "question_types.tsv")


@pytest.fixture(scope="module")
def classifier(encoder) -> QuestionTypeClassifier:
    return QuestionTypeClassifier(encoder)


def test_every_label_has_one_spelling():
    assert len(COARSE) == 6 and len(FINE) == 50
    assert len(set(FINE.values())) == 50
    assert from_trec("LOC:city") == ("LOC:LOCATION", "city:City")
    assert all(spelling.partition(":")[0] == label.partition(":")[2] for label, spelling in FINE.items())
    with pytest.raises(InputError, match="OTH:thing"):
        from_trec("OTH:thing")


@pytest.mark.parametrize(("question", "label"), CASES, ids=[question for question, _ in CASES])
def test_plain_questions(classifier, question, label):
    (typed,) = classifier.classify([question])
    assert (typed.coarse, typed.fine) == from_trec(label)
    assert 0 < typed.confidence <= 1


def test_company_and_order_do_not_matter_and_strange_questions_get_a_type(classifier, encoder):
    questions = [question for question, _ in CASES]
    together = classifier.classify(questions)
    assert classifier.classify(questions[::-1])[::-1] == together
    assert [QuestionTypeClassifier(encoder).classify([question])[0] for question in questions[:3]] == together[:3]
    assert classifier.classify([]) == []
    for typed in classifier.classify(["", "?", "東京", "word " * 2000]):
        assert isinstance(typed, PredictedType) and typed.coarse in COARSE.values()


def test_the_spelling_is_that_of_the_sources(data):
    """Every fine type that TriviaHG's and WikiHint's files write is one of ours, letter by letter."""
    written = set()
    for path in sorted((data / "triviahg").glob("*.json")):
        written |= {record["MinorType"] for record in json.loads(path.read_text(encoding="utf-8"))}
    records = json.loads((data / "wikihint" / "test_first50.json").read_text(encoding="utf-8"))
    written |= {record["question"]["question_type"]["minor"] for record in records}
    assert written and written <= set(FINE.values())
