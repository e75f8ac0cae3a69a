"""The look at a profile's servers: whatever they answer, one line, without the key."""

import pytest

from quit.models.serving import Serving, check
from quit.settings import ServerSettings
from tests.servers import rude
from tests.servers.keys import ACCESS, KEY, pieces
from tests.servers.rude import Fault, RudeServer


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ACCESS, KEY)


def _check(url: str, model: str = "rude") -> tuple[bool, str]:
    return check(Serving(("r",), model, ServerSettings(name="s", base_urls=(url,), api_key_env=ACCESS), None))


def test_a_server_that_serves_the_model_is_well_and_others_are_told() -> None:
    with RudeServer() as server:
        assert _check(server.base_url)[0]
        assert _check(server.base_url, "other") == (False, f"{server.base_url} serves rude, not other")
    assert not _check(server.base_url)[0], "it is gone"


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
        well, message = _check(server.base_url)
    assert not well and says in message and message.isprintable() and len(message) < 500
    assert not any(piece in message for piece in pieces())
