"""Arms of a small corpus: sub-questions, two levels, written ones, those of a file."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from quit.errors import InputError
from quit.qa.bandits import arms
from quit.qa.bandits.requests import requests
from quit.qa.opening import questions
from quit.qa.settings.bandits import Bandits
from quit.retrieval.protocols import Ranking
from tests.qa.bandits.test_decompose import decomposition
from tests.qa.scripted import SmallCollection, WordOverlap
from tests.rows import write_lines

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


def requests_of(collection: SmallCollection, parts=None, **more):
    """The requests of some parts, without them of the sub-questions."""
    parts = arms.sub_questions(questions(collection)) if parts is None else parts
    return requests(parts, collection, WordOverlap(collection), SETTINGS, **more)


def test_sub_questions_in_the_order_of_their_hops(collection: SmallCollection) -> None:
    [q, p] = questions(collection)
    assert ([step.query_id for step in q.steps], q.kind, p.steps) == (["q-s1", "q-s2"], "2hop", ())
    [arms_of] = arms.sub_questions([q, p])
    assert arms_of.arms == ("country inside South Africa", "king of Lesotho") and arms_of.parents == (-1, -1)
    with pytest.raises(InputError, match="No question of this corpus has sub-questions"):
        arms.sub_questions([p])


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


def test_written_arms_become_requests(collection: SmallCollection) -> None:
    def llm_decompositions(reply) -> list[arms.Decomposition]:
        return arms.llm_decompositions(
            questions(collection), collection, WordOverlap(collection), decomposition(reply), SETTINGS
        )

    arms_of = llm_decompositions(lambda request: '["king of Lesotho", "flour"]')
    assert [part.arms for part in arms_of] == [("king of Lesotho", "flour")] * 4
    written = requests_of(collection, arms_of)
    assert written[0].relevant.any() and not written[1].relevant.any()
    streams = [(request.request_id, request.stream) for request in written]
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
    [tree, flat] = requests_of(collection, arms_of)
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
