"""What a server's reply says, against bodies as vendors document them."""

import json
from typing import Any

import pytest

from quit.models.generation.reply import counts_of, refusal_of, status_of, text_of, withheld
from quit.models.generation.serving import is_about_key

THOUGHTS = [{"type": "text", "text": "A deep lake"}]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"error": {"code": 429}}, 429),
        ({"error": {"code": "502"}}, 502),
        ({"error": {"code": 200}}, 200),
        ({"error": {"code": "rate_limit"}}, 200),
        ({"error": "no"}, 200),
        ({"choices": [], "error": {"code": 429}}, 200),
        ([{"error": {"code": 429}}], 200),
    ],
)
def test_an_error_that_comes_as_a_success_has_its_own_code(body: Any, status: int) -> None:
    assert status_of(200, json.dumps(body).encode()) == status
    assert status_of(503, json.dumps(body).encode()) == 503


@pytest.mark.parametrize(
    ("message", "text", "thinks"),
    [
        ({"content": "Paris"}, "Paris", False),
        ({"content": None, "reasoning_content": "France"}, "", True),
        ({"content": "Paris", "reasoning_details": [{"type": "reasoning.text", "text": "France"}]}, "Paris", True),
        ({"content": [{"type": "text", "text": "Pa"}, {"type": "text", "text": "ris"}]}, "Paris", False),
        ({"content": [{"type": "thinking", "thinking": THOUGHTS}, {"type": "text", "text": "Paris"}]}, "Paris", True),
        ({"content": [{"type": "reasoning", "text": "France"}]}, "", True),
    ],
)
def test_a_text_may_be_in_parts_and_thoughts_beside_it(message: dict[str, Any], text: str, thinks: bool) -> None:
    said, thoughts = text_of(message)
    assert (said, bool(thoughts)) == (text, thinks)


@pytest.mark.parametrize(
    ("usage", "reply", "thoughts"),
    [
        ({"prompt_tokens": 9, "completion_tokens": 42, "completion_tokens_details": {"reasoning_tokens": 40}}, 42, 40),
        ({"prompt_tokens": 9, "completion_tokens": 2, "completion_tokens_details": {"reasoning_tokens": 40}}, 42, 40),
        ({"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 51}, 42, 0),  # Google's
        ({"input_tokens": 9, "output_tokens": 42}, 42, 0),
        ({"total_tokens": 51}, 0, 0),
        ({"prompt_tokens": 9, "completion_tokens": 42, "total_tokens": 0}, 42, 0),
        ({"prompt_tokens": 9.0, "completion_tokens": "7", "output_tokens": 42.0, "total_tokens": -3}, 42, 0),
    ],
)
def test_the_tokens_of_a_reply_are_what_all_fields_say(usage: dict[str, Any], reply: int, thoughts: int) -> None:
    counts = counts_of(json.dumps({"usage": usage}).encode())
    assert (counts.completion_tokens, counts.thought_tokens) == (reply, thoughts)


def test_no_more_of_a_prompt_is_cached_than_there_is() -> None:
    usage = {"prompt_tokens": 9, "prompt_tokens_details": {"cached_tokens": 10**8}}
    assert counts_of(json.dumps({"usage": usage}).encode()).cached_tokens == 9


@pytest.mark.parametrize(
    ("body", "what", "word"),
    [
        ({"error": {"code": "content_filter", "message": "The response was filtered"}}, "withheld", "content_filter"),
        ({"detail": "Content Exists Risk"}, "withheld", "Content Exists Risk"),
        ([{"error": {"code": 400, "status": "PROHIBITED_CONTENT"}}], "withheld", "PROHIBITED_CONTENT"),
        ({"promptFeedback": {"blockReason": "SAFETY"}}, "withheld", "blockReason SAFETY"),
        ({"error": {"message": "no", "innererror": {"code": "ResponsibleAIPolicyViolation"}}}, "withheld",
         "ResponsibleAIPolicyViolation"),
        ({"error": {"type": "exceed_context_size_error", "message": "too much"}}, "long", "exceed_context_size_error"),
        ({"error": {"message": "bad", "param": "content_filter"}, "input": "moderation"}, "", ""),
        ({"error": {"message": "Incorrect API key provided"}}, "", ""),
    ],
)  # fmt: skip
def test_a_refused_prompt_is_known_wherever_the_vendor_says_so(body: Any, what: str, word: str) -> None:
    assert refusal_of(403, json.dumps(body).encode()) == (what, word and f"HTTP 403 {word}")
    assert refusal_of(500, b"<html>Bad gateway</html>") == refusal_of(500, b"[" * 100_000) == ("", "")


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (429, "Too many tokens, please wait before trying again."),  # Bedrock's throttle
        (429, "Quota exceeded for metric: googleapis.com/generate_content_free_tier_input_token_count"),  # Google's
        (503, "The moderation service is overloaded"), (403, "Your account was flagged for potential abuse"),
    ],
)  # fmt: skip
def test_a_limit_or_an_account_refuses_no_prompt(status: int, text: str) -> None:
    assert refusal_of(status, json.dumps({"error": {"code": status, "message": text}}).encode()) == ("", "")


def test_a_withheld_reply_keeps_the_vendors_word() -> None:
    words = ["content_filter", "content_filter: RECITATION", "SAFETY"]
    assert [withheld(word) for word in words] == ["content_filter", *words[1:2], "content_filter: SAFETY"]


@pytest.mark.parametrize(
    ("status", "text", "about_key"),
    [
        (401, "Incorrect API key provided: sk-1", True), (403, "Forbidden", True), (400, "API_KEY_INVALID", True),
        (400, "API key not valid. Please pass a valid API key.", True), (403, "Missing scopes: model.request", False),
        (403, "Country, region, or territory not supported", False), (403, "Insufficient credit balance", False),
        (403, "Content violates usage guidelines", False), (400, "Unknown field seed", False), (500, "api key", False),
    ],
)  # fmt: skip
def test_the_key_is_named_where_it_is_the_matter(status: int, text: str, about_key: bool) -> None:
    assert is_about_key(status, json.dumps({"error": {"message": text}}).encode()) is about_key
