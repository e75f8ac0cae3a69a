"""Penalties and stop strings: part of what is asked and of its key, and no part of requests that do without."""

from dataclasses import replace

import pytest

from quit.models.generation import CachedGenerator, ChatRequest, Completion
from quit.models.generation.base import ModelOptions, before_stop, cache_key
from quit.models.generation.local import TransformersGenerator
from quit.models.generation.server import ServerGenerator
from quit.models.prompting import PromptTemplate
from quit.settings import ServerSettings
from tests.servers.checkpoints import checkpoint
from tests.servers.rude import RudeServer

TEMPLATE = PromptTemplate("t", "0123456789ab", (("user", "Say {what}."),))
PLAIN = ChatRequest(TEMPLATE, {"what": "it"}, 8, 0.5, 3, ("Yes", "No"), "g")
MORE = {"frequency_penalty": 0.8, "presence_penalty": 0.6, "stop": ("Answer:",)}


def test_replies_that_were_paid_for_before_keep_their_keys() -> None:
    assert cache_key("m", PLAIN).hex() == "f21aca931028af8b52145c4a47a19ba26caff0b6732df766203250275934f1fb"


def test_a_server_is_told_what_differs_from_plain_sampling_and_nothing_else() -> None:
    plain = ChatRequest(TEMPLATE, {"what": "it"}, 8)
    with RudeServer(reply=lambda payload: "ok") as server:
        settings = ServerSettings(name="s", base_urls=(server.base_url,))
        generator = ServerGenerator("r", ModelOptions("rude"), settings)
        CachedGenerator(generator, None).complete([plain])
        CachedGenerator(generator, None).complete([replace(plain, **MORE)])
        without, having = (request.payload for request in server.requests)
    assert having == without | MORE | {"stop": ["Answer:"]}
    assert not {"frequency_penalty", "presence_penalty", "stop"} & without.keys() and without["top_p"] == 1


@pytest.mark.parametrize(
    ("text", "stop", "left"),
    [("a Stop b", ("Stop",), "a "), ("a b", ("Stop",), "a b"), ("xy", ("y", "x"), ""), ("a", (), "a")],
)
def test_a_reply_ends_before_the_first_stop_string(text: str, stop: tuple[str, ...], left: str) -> None:
    assert before_stop(text, stop) == left


def _said(generator: TransformersGenerator, request: ChatRequest) -> Completion:
    return CachedGenerator(generator, None).complete([request])[0]


def test_transformers_heeds_penalties_and_stop_strings() -> None:
    path = checkpoint("llama", 3)
    generator = TransformersGenerator("t", ModelOptions(str(path)))
    request = ChatRequest(TEMPLATE, {"what": "it"}, 40)
    plain = _said(generator, request)
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(path)

    def repeats(text: str) -> int:
        ids = tokenizer(text, add_special_tokens=False)["input_ids"]
        return len(ids) - len(set(ids))

    assert repeats(plain.text) > 5, "the checkpoint must repeat itself for this test to show anything"
    for name in ("frequency_penalty", "presence_penalty"):
        assert repeats(_said(generator, replace(request, **{name: 1000.0})).text) < repeats(plain.text) / 2
    middle = plain.text[len(plain.text) // 2 :][:4]
    stopped = _said(generator, replace(request, stop=(middle,)))
    assert stopped.text == plain.text[: plain.text.index(middle)] and stopped.finish_reason == "stop"
