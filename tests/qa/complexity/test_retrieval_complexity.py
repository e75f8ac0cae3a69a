"""``quit complexity``: ratings follow the formulas, agreement is found where it is and not where it is not, bad input
is named."""

from dataclasses import asdict
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow.parquet as pq
import pytest
from scipy import stats

from quit.common.progress import Listener, listening
from quit.errors import InputError
from quit.models.factory import Models
from quit.models.generation import ChatRequest
from quit.models.protocols import Verdict
from quit.qa.commands.complexity import pieces
from quit.qa.complexity.agreement import agreement
from quit.qa.complexity.opinions import opinion_models
from quit.qa.complexity.questions import ComplexityQuestion, questions_of, read_questions
from quit.qa.complexity.retrieval_complexity import DECISIONS, ComplexityRating, Ratings, rate, write
from quit.qa.opening import Opened, questions
from quit.qa.relevance import JudgedAnswers
from quit.qa.settings import QaSettings
from quit.qa.settings.complexity import Complexity
from quit.render.table import markdown
from quit.retrieval.complexity import Retrieved
from tests.qa.scripted import SmallCollection, Talks, WordOverlap
from tests.qa.scripted import settings as talking
from tests.rows import write_lines

DOCUMENTS = [("Lesotho", "lies inside South Africa"), ("Letsie III", "is king of Lesotho"), ("Bread", "is of flour")]
QUERIES = [
    {"query_id": "q", "text": "Who is king of the land inside South Africa?", "answers": ["Moshoeshoe"],
     "kind": "2hop"},
    {"query_id": "q-s1", "text": "Which land lies inside South Africa?", "answers": ["Lesotho"], "parent_id": "q",
     "hop": 1},
    {"query_id": "q-s2", "text": "xyzzy", "answers": ["nothing"], "parent_id": "q", "hop": 2},
    {"query_id": "open", "text": "Why?", "answers": []},
]  # fmt: skip
SETTINGS = Complexity(documents=2, resamples=100)
T_COM = SETTINGS.model_copy(update={"t_com": 0.9})
TOKENS = SimpleNamespace(
    identity="tokens",
    prepare=lambda texts: None,
    relevance=lambda _, texts: np.array([[1.0, 1.0] if "king" in text else [1.0, 0.0] for text in texts]),
)
ANSWERS = SimpleNamespace(
    identity="answers",
    scores=lambda _, answers, texts, vectors: np.array([float(any(one in text for one in answers)) for text in texts]),
)


def rated_of(encoder) -> list[ComplexityRating]:
    collection = SmallCollection(DOCUMENTS, QUERIES, {})
    opened = Opened(collection, WordOverlap(collection), SimpleNamespace(encoder=encoder), None)
    return rate(questions_of(questions(collection)), opened, ANSWERS, TOKENS, SETTINGS)


def rating(answerability: float = 0.1, complete: float = 0.5, documents: int = 3, **question) -> ComplexityRating:
    item = ComplexityQuestion(**{"query_id": "q", "text": "q", "answers": ("Letsie III",), **question})
    return ComplexityRating(item, Retrieved(answerability, 0.0, complete, 0.1, documents))


def test_each_question_is_reported(encoder, monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[tuple[str, int, int | None]] = []
    listener = Listener()
    monkeypatch.setattr(listener, "advanced", lambda *report: heard.append(report))
    with listening(listener):
        rated_of(encoder)
    assert heard.count(("complexity: questions", 1, 3)) == 3  # the encoder reports too


def test_ratings(encoder, tmp_path: Path) -> None:
    ratings = Ratings.of(rated_of(encoder), SETTINGS)
    whole, step, nothing = ratings.table.to_pylist()
    assert [(row["query_id"], row["hops"]) for row in (whole, step, nothing)] == [("q", 2), ("q-s1", 1), ("q-s2", 1)]
    # One document of two speaks of both tokens.
    assert (whole["documents"], whole["completeness"]) == (2, 0.5)
    assert (whole["answerable"], whole["complete"], whole["complex"]) == (False, False, True)
    assert whole["margin"] == pytest.approx(min(0.5 - 0.0, SETTINGS.t_com - 0.5))
    assert step["answerable"] and not step["complex"] and step["margin"] == pytest.approx(-0.5)
    assert not any(nothing[name] for name in asdict(Retrieved(0, 0, 0, 0, 0))) and nothing["complex"]
    report = write(ratings, tmp_path, {"agreement": agreement(ratings)})
    assert (report["questions"], report["complex"], report["without_documents"]) == (3, 2, 1)
    table = pq.read_table(tmp_path / "complexity.parquet", columns=["query_id", "complex"])
    assert table.to_pydict() == {"query_id": ["q", "q-s1", "q-s2"], "complex": [True, False, True]}
    assert next(pieces(report)).startswith("3 questions")


@pytest.mark.parametrize(
    ("scores", "thresholds", "answerable", "complete"),
    [
        ((0.5, 0.2), (0.5, 0.9), True, False),
        ((0.49, 0.9), (0.5, 0.9), False, True),
        ((0.49, 0.89), (0.5, 0.9), False, False),
        ((0.0, 0.0, 0), (0.0, 0.0), False, False),  # no documents: neither
    ],
)
def test_complex_is_neither_answerable_nor_complete(scores, thresholds, answerable: bool, complete: bool) -> None:
    t_ans, t_com = thresholds
    ratings = Ratings.of([rating(*scores)], Complexity(t_ans=t_ans, t_com=t_com))
    decisions = [bool(ratings[name][0]) for name in DECISIONS]
    assert decisions == [answerable, complete, not answerable and not complete]


@cache
def drawn() -> list[ComplexityRating]:
    """Ratings whose answerability falls with the hops, and whose completeness is chance."""
    rng = np.random.default_rng(4)
    ratings = []
    for number in range(120):
        hops = int(rng.integers(1, 5))
        falling = float(np.clip(1 - 0.25 * hops + 0.1 * rng.normal(), 0, 1))
        question = {"query_id": str(number), "hops": hops, "kind": f"{hops}hop", "group": str(number // 2)}
        ratings.append(rating(falling, rng.random(), **question))
    return ratings


def test_agreement_is_found_where_it_is_and_not_elsewhere() -> None:
    figures = agreement(Ratings.of(drawn(), T_COM))
    two, hops, kinds = (figures[name] for name in ("known_complex", "hops", "kinds"))
    assert two["auc"]["answerability"]["value"] < 0.1 and two["auc"]["answerability"]["p"] < 0.01
    assert two["chosen_thresholds"]["matthews"]["value"] > 0.6
    assert hops["answerability"]["value"] < -0.5
    assert hops["completeness"]["low"] < 0 < hops["completeness"]["high"]
    assert kinds["answerability"]["value"] > 0.5 and kinds["answerability"]["p"] < 0.01 < kinds["completeness"]["p"]
    assert set(kinds["complex_share"]) == {"1hop", "2hop", "3hop", "4hop"}
    assert agreement(Ratings.of([one for one in drawn() if one.question.hops == 2], T_COM)) == {}, "one kind"


def test_a_prompted_model_is_one_more_decision_and_its_own_answers_are_compared() -> None:
    known = [one.question.hops > 1 for one in drawn()]
    correct = (~Ratings.of(drawn(), T_COM)["complex"]).tolist()
    ratings = Ratings.of(drawn(), T_COM, {"said_complex": [None, *known[1:]], "correct": correct})
    figures = agreement(ratings)
    first = int(known[0])  # what could not be read counts as a no
    assert figures["known_complex"]["language_model"]["accuracy"] == pytest.approx(1 - first / len(known))
    own = figures["correct"]
    assert own["accuracy"]["complex"] == 0.0 and own["accuracy"]["not_complex"] == 1.0
    assert own["pearson"]["complex"]["value"] == pytest.approx(-1.0)
    scores = [one.retrieved.answerability for one in drawn()]
    expected = stats.pearsonr(scores, [float(verdict) for verdict in correct]).statistic
    assert own["pearson"]["answerability"]["value"] == pytest.approx(expected)
    shown = markdown(pieces({"questions": 1, **dict.fromkeys(DECISIONS, 1), "agreement": figures}))
    assert "Pearson's correlation with it" in shown and "| pearson complex | -1.000 | -1.000 to -1.000 |" in shown


def test_opinions_of_language_models() -> None:
    def reply(request: ChatRequest) -> str:
        if request.template.name == "complex_question":
            return {"Who?": "Yes", "What?": "no."}.get(request.fields["question"], "Well,")
        sentence, declined = "The answer to this question is Letsie III.", "NO ANSWER (Letsie III)"
        answers = {"Who?": sentence, "What?": "Letsie III", "When?": declined}
        return answers.get(request.fields["question"], "The answer to this question is Moshoeshoe II.")

    settings = talking(complexity={"baseline_model": "tiny", "answer_model": "tiny"})
    models = opinion_models(Talks(settings, reply), settings)
    items = [rating(query_id=text, text=text).question for text in ("Who?", "What?", "When?", "Why?")]
    for _ in range(2):  # alike when it is asked again
        said, correct = (models[name].opinion(items) for name in ("said_complex", "correct"))
        assert said.verdicts == [True, False, None, None]
        assert correct.verdicts == [True, True, False, False], "a sentence may be right"
        assert said.facts["baseline_replies"] == {"verdicts": 4, "unread": 2}
        counts = {"answers": 4, "no_answer": 1, "tokens": 64, "cut": 0, "unread_verdicts": 0}
        assert correct.facts["answer_replies"] == counts
    assert opinion_models(Models(QaSettings()), QaSettings()) == {}


def test_a_judge_as_head() -> None:
    verdicts = {"x": (True, None), "y": (False, None), "p": (False, 0.7), "hm": (None, None)}

    def judged(items, sample=0):
        return [Verdict(*verdicts[item.candidate], "") for item in items]

    head = JudgedAnswers(SimpleNamespace(name="judge", identity="judge", verdicts=judged))
    assert head.scores("q", ["a"], list(verdicts), np.zeros((4, 2))).tolist() == [1.0, 0.0, 0.7, 0.0]
    assert head.counts["unread"] == 1
    assert head.scores("q", [], ["x"], np.zeros((1, 2))).tolist() == [0.0]


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


def test_labels_of_a_file_are_what_complexity_is_compared_with(tmp_path: Path) -> None:
    rows = [{"complex": True}, {"complex": False, "hops": 3}, {"hops": 2}, {}]
    records = [{"id": number, "question": "q", "answers": ["a"], **row} for number, row in enumerate(rows)]
    items = read_questions(write_lines(tmp_path / "q.jsonl", records))
    assert [item.label for item in items] == [True, False, True, None]
    # Complex are 0 and 1 (no document holds an answer), so of the three labelled ones 0 is right and 1 and 2 are wrong.
    rated = [ComplexityRating(item, rating(float(number > 1), 0.1).retrieved) for number, item in enumerate(items)]
    ratings = Ratings.of(rated, T_COM)
    figures = agreement(ratings)
    two = figures["known_complex"]
    assert (two["items"], two["positive"], two["complex"]["accuracy"]) == (3, 2, pytest.approx(1 / 3))
    page = markdown(pieces(write(ratings, tmp_path, {"agreement": figures})))
    assert "Known to be complex (2 of 3)" in page
    assert "| complex matthews | -0.500 | – |" in page, "a resample of three questions often has one label alone"
    assert pq.read_table(tmp_path / "complexity.parquet")["known_complex"].to_pylist() == [True, False, None, None]


def test_nothing_to_ask() -> None:
    with pytest.raises(InputError, match="None of the questions has an answer"):
        questions_of(questions(SmallCollection(DOCUMENTS, QUERIES[3:], {})))
