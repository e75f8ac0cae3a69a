"""The look at a profile's servers: whatever they answer, one line, without the key."""

import io
import json

import pytest

from quit.models.generation.serving import Serving, check, model_names
from quit.settings import ServerSettings
from tests.servers import rude
from tests.servers.keys import ACCESS, KEY, pieces
from tests.servers.rude import Fault, RudeServer


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ACCESS, KEY)


def _check(url: str, model: str = "rude", **server: str) -> tuple[bool, str, str]:
    settings = ServerSettings(name="s", base_urls=(url,), api_key_env=ACCESS, **server)
    return check(Serving(("r",), model, settings, ()))


def test_a_server_that_serves_the_model_is_well_and_others_are_told() -> None:
    with RudeServer() as server:
        assert _check(server.base_url)[0]
        assert _check(server.base_url, "other")[:2] == (False, f"{server.base_url} serves rude, not other")
    assert not _check(server.base_url)[0], "it is gone"


@pytest.mark.parametrize(("status", "remedy"), [(401, f"Set {ACCESS}."), (503, "See whether")])
def test_a_vendors_server_is_not_to_be_started(status: int, remedy: str, monkeypatch) -> None:
    with RudeServer() as server:
        server.models = rude.failure(status)
        assert _check(server.base_url, flavour="openai")[2].startswith(remedy)
    assert _check(server.base_url, flavour="openai")[2].startswith("See whether"), "it is gone"
    monkeypatch.delenv(ACCESS)
    well, message, remedy = _check(server.base_url, flavour="openai")
    assert not well and message.endswith(f"{ACCESS} is not set. Set it to the API key.") and not remedy


def test_a_key_that_may_ask_and_not_list_is_no_fault() -> None:
    with RudeServer() as server:
        server.models = rude.failure(403, "Missing scopes: api.model.read")
        assert _check(server.base_url)[0]


def test_googles_names_are_recognised() -> None:
    with RudeServer() as server:
        server.models = Fault(body=b'{"data": [{"id": "models/gemini"}]}')
        assert _check(server.base_url, "gemini")[0] and _check(server.base_url, "models/gemini")[0]


def test_anthropic_is_given_the_key_as_its_list_of_models_needs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    class Opener:
        def open(self, request, timeout: float) -> io.BytesIO:
            assert request.get_header("X-api-key") == KEY and request.get_header("Anthropic-version")
            assert not request.has_header("Authorization")
            return io.BytesIO(b'{"data": [{"id": "claude"}]}')

    monkeypatch.setattr("urllib.request.build_opener", lambda *_: Opener())
    assert model_names("https://api.anthropic.com/v1", KEY) == {"claude": 0}


def test_a_servers_list_tells_the_context_of_its_models() -> None:
    models = [
        {"id": "a", "max_model_len": 4096},
        {"id": "b", "context_length": 8192},
        {"id": "c", "meta": {"n_ctx": 2048}},
        {"id": "d"},
    ]
    with RudeServer() as server:
        server.models = Fault(body=json.dumps({"data": models}).encode())
        assert model_names(server.base_url, None) == {"a": 4096, "b": 8192, "c": 2048, "d": 0}


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (rude.redirect(f"http://127.0.0.1:9/{rude.KEY}"), "HTTP 307"),
        (rude.NESTED, "does not answer"),
        (rude.ENDLESS, "does not answer"),
        (rude.NO_HTTP, f"({ACCESS})"),
        (Fault(body=b'{"data": [{"id": "<key>"}, {"id": "a\\u001b[2J\\ud83d"}]}'), f"({ACCESS}), a?[2J?, not"),
        (Fault(body=b'{"data": [1]}'), "does not answer"),
    ],
    ids=["redirect", "nested", "endless", "no HTTP", "names", "no names"],
)
def test_a_rude_answer_is_one_line_without_the_key(answer: Fault, says: str) -> None:
    with RudeServer() as server:
        server.models = answer
        well, message, _ = _check(server.base_url)
    assert not well and says in message and message.isprintable() and len(message) < 500
    assert not any(piece in message for piece in pieces())
