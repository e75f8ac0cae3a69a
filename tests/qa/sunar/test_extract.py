"""The extractive reader: candidates by hand, the reader on documents made for it."""

import pytest

from quit.models.protocols import NO_ANSWER
from quit.models.question_type import QuestionTypeClassifier
from quit.qa.sunar import extract
from quit.qa.sunar.extract import ExtractiveReader, sentences, spans, untitled

DOCUMENTS = [
    "Ivanhoe Ivanhoe is a historical novel by Walter Scott. It was published in December 1819.",
    "Walter Scott Sir Walter Scott (15 August 1771 – 21 September 1832) was a novelist. He was born in Edinburgh.",
    "Firth of Forth The Firth of Forth is the estuary of several rivers, 29.6 km long.",
]


@pytest.fixture(scope="module")
def reader(encoder):
    types = QuestionTypeClassifier(encoder)

    def kind(question: str) -> tuple[str, str]:
        [of_question] = types.classify([question])
        return of_question.coarse, of_question.fine

    return ExtractiveReader(encoder, kind)


def _spans(text: str) -> set[tuple[str, str]]:
    return {(text[start:end], kind) for kind, start, end in spans(text)}


def test_spans_by_hand() -> None:
    text = 'On 4 May 1931 John F. Smith of the Bank of England sold "Red Barn" for $2.5 million in Ohio and Iowa'
    names = ("John F. Smith of the Bank of England", "Ohio and Iowa", "Ohio", "Iowa")
    others = {("4 May 1931", "date"), ("1931", "year"), ("Red Barn", "quoted"), ("$2.5 million", "number")}
    assert {(name, "name") for name in names} | others <= _spans(text)
    assert ("4", "number") not in _spans(text), "a day is part of its date"
    assert _spans("He died of heart failure.") == {("died", "phrase"), ("heart failure", "phrase")}
    assert _spans("") == set()
    assert {"15,234", "25"} <= {
        name for name, kind in _spans("It had 15,234, of whom 25, were old.") if kind == "number"
    }
    assert ("-40", "number") in _spans("It was -40 there.") and ("40", "number") in _spans("Of 1914-40 people.")


def test_sentences_survive_initials_and_titles() -> None:
    parts = ["J. R. Smith met Dr. Jones.", "He left!", "Did he?", "3 went."]
    assert sentences(" ".join(parts)) == parts
    assert sentences("  ") == []


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("Ivanhoe Ivanhoe is a novel", "Ivanhoe"),
        ("Red Barn Red Barn is a film", "Red Barn"),
        ("Walter Scott Sir Walter Scott was", "Walter Scott Sir"),
        ("Sam Elliott Samuel Pack Elliott is", "Sam Elliott"),
        ("No title here at all", ""),
    ],
)
def test_titles_are_told_from_texts_where_that_can_be_seen(text: str, title: str) -> None:
    assert untitled(text)[0] == title


@pytest.mark.parametrize(
    ("question", "answer"),
    [("Who wrote the novel Ivanhoe?", "Walter Scott"), ("When was Ivanhoe published?", "December 1819"),
     ("Where was Walter Scott born?", "Edinburgh"), ("Walter Scott >> place of birth", "Edinburgh")],
)  # fmt: skip
def test_easy_questions(reader, question: str, answer: str) -> None:
    assert reader.answer(question, DOCUMENTS) == answer


@pytest.mark.parametrize("documents", [[], [""], ["and of the in"]])
def test_documents_without_a_candidate_give_no_answer(reader, documents: list[str]) -> None:
    assert reader.answer("Who wrote Ivanhoe?", documents) == NO_ANSWER
    assert reader.samples("Who wrote Ivanhoe?", documents, 3) == [NO_ANSWER] * 3


def test_samples_are_the_same_whenever_asked_for_and_spread_with_temperature(reader, monkeypatch) -> None:
    question = "Who wrote the novel Ivanhoe?"
    samples = reader.samples(question, DOCUMENTS, 10)
    assert samples == reader.samples(question, DOCUMENTS, 10) and samples[:4] == reader.samples(question, DOCUMENTS, 4)
    monkeypatch.setattr(extract, "TEMPERATURE", 1e-6)
    assert set(reader.samples(question, DOCUMENTS, 10)) == {reader.answer(question, DOCUMENTS)}
    monkeypatch.setattr(extract, "TEMPERATURE", 50.0)
    assert len(set(reader.samples(question, DOCUMENTS, 10))) > 4
