"""Sub-queries by a language model: what is read of its replies."""

import pytest

from quit.models.generation.base import ChatRequest
from quit.models.prompting import load_prompt
from quit.qa.bandits.decompose import FIELDS, DecompositionRequest, LLMDecomposition, merge_queries, parse_queries
from quit.qa.settings.bandits import Bandits
from tests.qa.scripted import scripted
from tests.rows import cases


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
