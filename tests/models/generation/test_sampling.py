"""Penalties and stop strings where transformers runs the model; requests to servers are tested in test_server."""

from dataclasses import replace

import pytest

from quit.models.generation import ChatRequest, Completion
from quit.models.generation.base import ModelOptions, before_stop
from quit.models.generation.local import TransformersGenerator
from quit.models.prompting import PromptTemplate
from tests.servers.checkpoints import checkpoint


@pytest.mark.parametrize(
    ("text", "stop", "left"),
    [("a Stop b", ("Stop",), "a "), ("a b", ("Stop",), "a b"), ("xy", ("y", "x"), ""), ("a", (), "a")],
)
def test_a_reply_ends_before_the_first_stop_string(text: str, stop: tuple[str, ...], left: str) -> None:
    assert before_stop(text, stop) == left


def test_transformers_heeds_penalties_and_stop_strings() -> None:
    generator = TransformersGenerator("t", ModelOptions(str(checkpoint("llama", 3))))
    _, tokenizer = generator._loaded
    request = ChatRequest(PromptTemplate("t", "0123456789ab", (("user", "Say {what}."),)), {"what": "it"}, 12)

    def reply(**more) -> Completion:
        replies: dict[int, Completion] = {}
        generator.generate([replace(request, **more)], replies.__setitem__)
        return replies[0]

    def repeats(text: str) -> int:
        ids = tokenizer(text, add_special_tokens=False)["input_ids"]
        return len(ids) - len(set(ids))

    plain = reply().text
    assert repeats(plain) > 5, "the checkpoint must repeat itself for this test to show anything"
    for name in ("frequency_penalty", "presence_penalty"):
        assert repeats(reply(**{name: 1000.0}).text) < repeats(plain) / 2
    middle = plain[len(plain) // 2 :][:4]
    stopped = reply(stop=(middle,))
    assert stopped.text == plain[: plain.index(middle)] and stopped.finish_reason == "stop"
