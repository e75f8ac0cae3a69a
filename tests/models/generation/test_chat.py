"""What a server is asked, and what its refusals mean, without a server."""

import json

import pytest

from quit.errors import SettingsError
from quit.models.generation.base import ChatRequest, ModelOptions
from quit.models.generation.chat import Chat
from quit.models.generation.reply import PassingFault
from quit.models.prompting import load_prompt
from quit.settings import ServerSettings


def _chat(**options) -> Chat:
    server = ServerSettings(name="s", base_urls=["http://h/v1"], flavour=options.pop("flavour", "openai"))
    return Chat("judge", "http://h/v1", ModelOptions("m", **options), server, [])


@pytest.mark.parametrize(
    ("status", "headers", "kind", "words"),
    [
        (503, {"Retry-After": "7"}, PassingFault, "HTTP 503"),
        (302, {"Location": "http://user:pass@other/x"}, SettingsError, "redirects requests of judge to other "),
        (404, {}, SettingsError, "has no model 'm'"),
        (401, {}, SettingsError, "refuses the API key of judge"),
    ],
)
def test_a_status_says_whether_asking_again_helps(status, headers, kind, words) -> None:
    fault = _chat().fault(status, b"", headers)
    assert type(fault) is kind and words in str(fault) and "pass@" not in str(fault)
    assert getattr(fault, "after", 7.0) == 7.0


def test_a_refused_field_is_cured_by_the_setting_that_leaves_it_out() -> None:
    error = json.dumps({"error": {"message": "Unsupported parameter: 'max_tokens'"}}).encode()
    fault = str(_chat().fault(400, error, {}))
    assert fault.endswith('Set this for judge in the profile: token_field = "max_completion_tokens".')


@pytest.mark.parametrize(("flavour", "field"), [("vllm", "structured_outputs"), ("openai", "response_format")])
def test_a_choice_is_asked_for_in_the_servers_own_words(flavour, field) -> None:
    request = ChatRequest(load_prompt("probe"), {"question": "Who?"}, 8, choices=("Yes", "No"))
    payload = json.loads(_chat(flavour=flavour).body(request))
    assert "Yes" in json.dumps(payload[field]) and {"structured_outputs", "response_format"} & {*payload} == {field}
    assert "temperature" not in json.loads(_chat(omit=("temperature",)).body(request))
