"""Arms and requests of a small corpus: sub-questions, two levels, written ones; what is relevant, and to whom."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from quit.errors import InputError
from quit.models.generation.base import ChatRequest
from quit.models.prompting import load_prompt
from quit.qa.bandits import arms
from quit.qa.bandits.decompose import FIELDS, DecompositionRequest, LLMDecomposition, merge_queries, parse_queries
from quit.qa.opening import questions
from quit.qa.settings.bandits import Bandits
from quit.retrieval.protocols import Ranking
from tests.qa.scripted import SmallCollection, WordOverlap, scripted
from tests.rows import cases, write_lines

DOCUMENTS = [
    ("Lesotho", "is a country inside South Africa"),
    ("Letsie III", "is king of Lesotho since 1996"),
    ("Bread", "is baked of flour"),
    ("South Africa", "has three capital cities"),
    ("", "king of nothing"),
]
QUERIES = [
    {"query_id": "q", "text": "Who reigns inside South Africa?", "answers": ["Letsie III"], "kind": "2hop"},
    {"query_id": "q-s2", "text": "king of Lesotho", "answers": ["Letsie III"], "parent_id": "q", "hop": 2},
    {"query_id": "q-s1", "text": "country inside South Africa", "answers": ["Lesotho"], "parent_id": "q", "hop": 1},
    {"query_id": "p", "text": "What is xyzzy?", "answers": ["nothing"]},
]
QRELS = {"q": {0: 1, 1: 1, 3: 1}, "q-s1": {0: 1}, "q-s2": {1: 1}}
SETTINGS = Bandits(documents=3, arms=6, decompositions=2)


@pytest.fixture
def collection() -> SmallCollection:
    return SmallCollection(DOCUMENTS, QUERIES, QRELS)


def _requests(collection: SmallCollection, parts=None, **more):
    """The requests of some parts, without them of the sub-questions."""
    parts = arms.sub_questions(questions(collection)) if parts is None else parts
    return arms.requests(parts, collection, WordOverlap(collection), SETTINGS, **more)


def test_sub_questions_in_the_order_of_their_hops(collection: SmallCollection) -> None:
    [q, p] = questions(collection)
    assert ([step.query_id for step in q.steps], q.kind, p.steps) == (["q-s1", "q-s2"], "2hop", ())
    [arms_of] = arms.sub_questions([q, p])
    assert arms_of.arms == ("country inside South Africa", "king of Lesotho") and arms_of.parents == (-1, -1)
    with pytest.raises(InputError, match="No question of this corpus has sub-questions"):
        arms.sub_questions([p])


def test_requests_hold_what_the_first_stage_finds(collection: SmallCollection) -> None:
    [arms_of] = _requests(collection, vectors=lambda rows: np.eye(5)[rows])
    assert arms_of.documents.tolist() == [[0, 3, -1], [1, 4, 0]]
    assert arms_of.relevant.tolist() == [[True, True, False], [True, False, True]]
    assert arms_of.observed.tolist() == arms_of.relevant.astype(float).tolist()
    assert arms_of.scores[0].tolist() == [4.0, 2.0, 0.0]
    # nuggets: each sub-question, and the document that only the whole question calls relevant
    assert arms_of.gold.tolist() == [0, 1, 3]
    assert arms_of.nuggets.tolist() == [[True, False, False], [False, True, False], [False, False, True]]
    assert arms_of.vectors.shape == (4, 5) and arms_of.size == 5


def test_policies_can_observe_scores_or_a_judge(collection: SmallCollection) -> None:
    def scores(question, answers, texts, vectors):
        assert question == "Who reigns inside South Africa?" and answers == ("Letsie III",)
        return np.array([1.5 if "king" in text else 0.2 for text in texts])

    [judged] = _requests(collection, relevance=SimpleNamespace(identity="king", scores=scores))
    assert judged.observed.tolist() == [[0.2, 0.2, 0.0], [1.0, 1.0, 0.2]]
    assert judged.relevant.tolist() == [[True, True, False], [True, False, True]]  # metrics still go by the qrels
    [scored] = _requests(collection, relevance="scores")
    assert scored.observed * 3 == pytest.approx(np.array([[3, 1, 0], [2, 1, 0]]))


def test_a_second_level_is_made_of_titles_and_no_labels(collection: SmallCollection) -> None:
    collection._qrels = {}

    def levels(settings: Bandits) -> arms.Decomposition:
        parts = arms.sub_questions(questions(collection))
        [arms_of] = arms.two_level(parts, collection, WordOverlap(collection), settings)
        return arms_of

    arms_of = levels(SETTINGS)
    country, king = "country inside South Africa", "king of Lesotho"
    # South Africa is in the sub-question already; a blank title and Lesotho refine nothing.
    assert arms_of.arms == (country, king, f"{country} Lesotho", f"{king} Letsie III")
    assert arms_of.parents == (-1, -1, 0, 1)
    assert len(levels(Bandits(documents=3, arms=3)).arms) == 3


def test_a_title_that_comes_twice_has_its_first_place() -> None:
    titles = ["Lyon", "Paris", "", "LYON", "Berlin"]
    collection = SimpleNamespace(titles=lambda rows: [titles[row] for row in rows])
    ranking = Ranking(np.arange(5), np.linspace(1, 0, 5, dtype=np.float32))
    assert arms._titles("who founded Berlin", ranking, collection) == ["Lyon", "Paris"]


def test_a_question_that_matches_nothing_has_empty_lists(collection: SmallCollection) -> None:
    part = arms.Decomposition(questions(collection)[1], ("xyzzy", "plugh"), (-1, -1))
    [arms_of] = _requests(collection, [part], vectors=lambda rows: np.eye(5)[rows])
    assert (arms_of.size, arms_of.relevant_share) == (0, 0.0)
    assert (arms_of.gold.shape, arms_of.nuggets.shape) == ((0,), (0, 0))


@pytest.mark.parametrize(("reply", "expected"), cases(__file__, "replies.jsonl"))
def test_what_can_be_read_of_a_reply(reply: str, expected: list[str]) -> None:
    """Lists in JSON, numbered or dashed; the prompt's example once more and no queries are nothing; the last are
    SmolLM2-135M's."""
    assert parse_queries(reply) == expected


def test_the_last_item_of_a_reply_that_was_cut_does_not_count() -> None:
    assert parse_queries("1. county of Van Hook\n2. seat of Mount", cut=True) == ["county of Van Hook"]


def test_half_a_character_of_a_reply_is_replaced() -> None:
    assert parse_queries(r'["seat \ud83d of \ud83d\ude00"]') == ["seat \ufffd of \U0001f600"]


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [("abcd", "efgh", "abef"), ("a", "efgh", "aefg"), ("abcd", "Ae", "abce"), ("", "", "")],
)
def test_half_from_each_prompt_and_no_two_alike(first: str, second: str, expected: str) -> None:
    assert merge_queries(list(first), list(second), 4) == list(expected)


def decomposition(reply) -> LLMDecomposition:
    prompts = [load_prompt(name, FIELDS) for name in ("decompose_definitional", "decompose_specialised")]
    return LLMDecomposition(scripted(reply), prompts[0], prompts[1], Bandits(arms=4, attempts=2, date="2026-01-01"))


def test_a_model_is_asked_with_both_prompts() -> None:
    seen: list[ChatRequest] = []

    def reply(request: ChatRequest) -> str:
        seen.append(request)
        definitional = request.template.name.endswith("definitional")
        return '["what is it", "who is it"]' if definitional else '["when exactly", "how much", "x"]'

    arms_of = decomposition(reply).sub_queries([DecompositionRequest("q", "A request", ("some document",))])
    assert arms_of == [["what is it", "who is it", "when exactly", "how much"]]
    assert [request.fields["context"] for request in seen] == ["some document", "some document"]
    assert all(request.temperature == 0.7 for request in seen)
    text = seen[1].messages()[-1]["content"]
    assert "A request" in text and "2026-01-01" in text and "at most 4" in text


def test_a_model_that_rambles_is_asked_again_and_then_the_request_stands_alone() -> None:
    writer = decomposition(lambda request: "Well, " * 200)
    assert writer.sub_queries([DecompositionRequest("q7", "A request")]) == [["A request"]]
    assert writer.counts == {"replies": 4, "unread": 4, "cut": 0, "decompositions": 1, "without_sub_queries": 1}


def test_written_arms_become_requests(collection: SmallCollection) -> None:
    def llm_decompositions(reply) -> list[arms.Decomposition]:
        return arms.llm_decompositions(
            questions(collection), collection, WordOverlap(collection), decomposition(reply), SETTINGS
        )

    arms_of = llm_decompositions(lambda request: '["king of Lesotho", "flour"]')
    assert [part.arms for part in arms_of] == [("king of Lesotho", "flour")] * 4
    requests = _requests(collection, arms_of)
    assert requests[0].relevant.any() and not requests[1].relevant.any()
    streams = [(request.request_id, request.stream) for request in requests]
    assert streams == [("q", "q"), ("p", "p"), ("q", "q#1"), ("p", "p#1")]
    arms_of = llm_decompositions(lambda request: f'["query {request.sample}"]')  # two attempts each
    assert [(part.arms, part.number) for part in arms_of[::2]] == [(("query 0",), 0), (("query 2",), 1)]


def test_arms_of_a_file_are_any_tree(collection: SmallCollection, tmp_path: Path) -> None:
    lines = [
        {"query_id": "q", "arms": ["country", "king", "king of Lesotho"], "parents": [None, -1, 1]},
        {"query_id": "elsewhere", "arms": ["x"]},
        {"query_id": "q", "arms": ["Lesotho"]},
    ]
    arms_of = arms.of_file(write_lines(tmp_path / "arms.jsonl", lines), questions(collection))
    parts = [(part.arms, part.parents, part.number) for part in arms_of]
    assert parts == [(("country", "king", "king of Lesotho"), (-1, -1, 1), 0), (("Lesotho",), (-1,), 1)]
    [tree, flat] = _requests(collection, arms_of)
    assert tree.children(1).tolist() == [2] and (flat.request_id, flat.decomposition) == ("q", 1)


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"query_id": "q", "arms": 3}, "line 1: expected"),
        ({"id": "q", "arms": ["a"]}, "line 1: expected {query_id, arms, parents}"),
        ({"query_id": "q", "arms": ["a", " "]}, "arms a list of texts"),
        ({"query_id": "q", "arms": ["a", "b"], "parents": [None]}, "each of the 2 arms"),
        ({"query_id": "q", "arms": ["a", "b"], "parents": [1, None]}, "an earlier one"),
        ({"query_id": "q", "arms": ["a"], "parents": [True]}, "an earlier one"),
        ({"query_id": "q", "arms": ["a"], "parents": "none"}, "parents must have"),
        ({"query_id": "z", "arms": ["a"]}, "no arms of the 2 questions"),
    ],
)
def test_arms_that_cannot_be_used_are_named(collection: SmallCollection, tmp_path: Path, row: dict, said: str) -> None:
    with pytest.raises(InputError, match=said):
        arms.of_file(write_lines(tmp_path / "arms.jsonl", [row]), questions(collection))
