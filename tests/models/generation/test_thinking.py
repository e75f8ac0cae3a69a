"""Models that think, at scripted servers that refuse what their vendors' documents say they refuse."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from quit.errors import SettingsError
from quit.models.generation import CachedGenerator, ChatRequest, GenerationCache, Meter
from quit.models.generation.base import ModelOptions
from quit.models.generation.reply import answer_of
from quit.models.generation.server import ServerGenerator
from quit.models.judges import GptEvalJudge
from quit.models.language_models import options_of
from quit.models.prompting import load_prompt
from quit.models.protocols import JudgeItem
from quit.settings import ReaderSettings, ServerSettings
from quit.settings.loading import starting_profile
from tests.paths import ROOT
from tests.rows import cases
from tests.servers.checkpoints import checkpoint
from tests.servers.rude import Fault, RudeServer, failure
from tests.servers.vllm import VllmServer

PAGE = (ROOT / "docs" / "howto" / "language-models.md").read_text(encoding="utf-8")
ROWS = re.findall(
    r"^\| (.*?) \| (`.*`) \|$", PAGE.partition("### Models that think")[2].partition("\n###")[0], flags=re.M
)
THOUGHTS = {"completion_tokens_details": {"reasoning_tokens": 40}, "completion_tokens": 42, "prompt_tokens": 9}
"""Usage of a reply of two tokens after forty of thoughts."""


def _openai(payload: Any) -> str:
    """OpenAI's reasoning models: what they know, in the words of their 400s."""
    for name in ("max_tokens", "temperature", "top_p", "presence_penalty", "frequency_penalty"):
        if name in payload:
            more = " Use 'max_completion_tokens' instead." if name == "max_tokens" else ""
            return f"Unsupported parameter: '{name}' is not supported with this model.{more}"
    return "" if "seed" not in payload else "Unknown parameter: 'seed'."


def _anthropic(payload: Any) -> str:
    if "temperature" in payload and ("top_p" in payload or "thinking" in payload):
        return "`temperature` and `top_p` cannot both be specified for this model, nor with thinking."
    thinking = payload.get("thinking", {}).get("budget_tokens", 0)
    return "max_tokens must be greater than thinking.budget_tokens" if payload["max_tokens"] <= thinking else ""


def _google(payload: Any) -> str:
    known = {"model", "messages", "max_tokens", "temperature", "top_p", "stream", "reasoning_effort", "stop"}
    return next((f'Invalid JSON payload received. Unknown name "{name}"' for name in payload.keys() - known), "")


def _ollama(payload: Any) -> str:
    effort = payload.get("reasoning_effort")
    return "" if effort in ("none", "low", "medium", "high") else f"invalid reasoning_effort: {effort}"


VENDORS = {"OpenAI": _openai, "Anthropic": _anthropic, "the same, thinking": _anthropic, "Google": _google,
           "Ollama": _ollama, "vLLM": lambda payload: "", "Qwen": lambda payload: ""}  # fmt: skip


def _client(url: str, options: ModelOptions, name: str = "r", **server: Any) -> ServerGenerator:
    return ServerGenerator(name, options, ServerSettings(name="s", base_urls=(url,), **server))


def _settings(texts: str) -> dict[str, Any]:
    return tomllib.loads("\n".join(re.findall(r"`([^`]+)`", texts)))


@pytest.mark.parametrize(("model", "texts"), ROWS, ids=[row[0] for row in ROWS])
def test_every_row_of_the_page_reads(model: str, texts: str) -> None:
    refuses = next(rule for name, rule in VENDORS.items() if model.startswith(name))
    options = options_of(ReaderSettings(name="r", role="reader", kind="server", model="m", **_settings(texts)))
    thinks = options.thinking == "drop"

    def script(number: int, payload: Any) -> Fault:
        if fault := refuses(payload):
            return failure(400, fault)
        return Fault(content="Paris", thoughts="It is in France." if thinks else "", usage=THOUGHTS if thinks else {})

    meter = Meter()
    with RudeServer(script) as server:
        flavour = "vllm" if "vLLM" in model else "openai"
        generator = CachedGenerator(_client(server.base_url, options, flavour=flavour, attempts=1), None, meter)
        [reply] = generator.complete([ChatRequest(load_prompt("probe"), {"question": "Where?"}, 32)])
    assert reply.text == "Paris"
    assert meter.snapshot()["r"].thought_tokens == 40 * thinks
    [payload] = server.answered
    assert payload[options.token_field] == 32 + 2000 * thinks


STARTING = {"OpenAI": "openai-thinking", "Anthropic": "anthropic", "the same, thinking": "anthropic",
            "Google": "google", "Ollama": "ollama", "vLLM": "vllm", "Qwen": "vllm"}  # fmt: skip


@pytest.mark.parametrize(("model", "texts"), ROWS, ids=[row[0] for row in ROWS])
def test_every_row_of_the_page_is_in_a_profile_to_start_from(model: str, texts: str) -> None:
    kind = next(kind for name, kind in STARTING.items() if model.startswith(name))
    lines = [line.removeprefix("# ") for line in starting_profile(kind, "m").splitlines()]
    assert all(any(line.startswith(setting) for line in lines) for setting in re.findall(r"`(\w+ = [^`]+)`", texts))
    if address := re.search(r"https://[^`]+", model):
        assert f'base_urls = ["{address[0]}"]' in lines


@pytest.mark.parametrize(
    ("message", "options", "cure"),
    [
        (_openai({"max_tokens": 1}), {}, 'token_field = "max_completion_tokens"'),
        ("Unknown parameter: max_completion_tokens", {}, 'token_field = "max_tokens"'),
        (_openai({"top_p": 1}), {"omit": ("temperature",)}, 'omit = ["temperature", "top_p"]'),
        ("'response_format' of type json_schema is not supported", {}, "constrained = false"),
        ("Unrecognized request argument: reasoning_effort", {}, "no effort"),
    ],
)
def test_a_refusal_names_the_setting_that_cures_it(message: str, options: dict[str, Any], cure: str) -> None:
    with RudeServer([failure(400, message)]) as server:
        generator = _client(server.base_url, ModelOptions("m", **options))
        with pytest.raises(SettingsError) as refused:
            generator.generate([ChatRequest(load_prompt("probe"), {"question": "Where?"}, 32)], lambda *_: None)
    assert str(refused.value).endswith(f"Set this for r in the profile: {cure}.")


@pytest.mark.parametrize(("text", "ended", "reasoning", "answer"), cases(__file__, "thoughts.jsonl"))
def test_thoughts_are_dropped(text: str, ended: str, reasoning: str, answer: str) -> None:
    """In the text or beside it, cut or whole; the template may have opened them, a vendor may hide them."""
    options = ModelOptions("m", thinking="drop", thinking_tokens=100)
    assert answer_of("r", options, text, ended, reasoning) == answer


def test_a_reply_cut_inside_its_thoughts_is_kept_and_said_so(tmp_path: Path, capsys) -> None:
    options = ModelOptions("m", thinking="drop", thinking_tokens=5)
    request = ChatRequest(load_prompt("probe"), {"question": "Where?"}, 32)
    with RudeServer([Fault(content="", thoughts="It may", finish_reason="length")] * 2) as server:
        for _ in range(2):
            with GenerationCache(tmp_path / "replies.sqlite") as cache:
                [reply] = CachedGenerator(_client(server.base_url, options), cache).complete([request])
            assert (reply.text, reply.finish_reason) == ("", "length")
            assert "r: 1 reply was cut before the answer began. Raise thinking_tokens" in capsys.readouterr().err
    assert len(server.requests) == 1


@pytest.mark.slow
def test_a_judge_thinks_at_vllm(capsys: pytest.CaptureFixture[str]) -> None:
    import transformers

    prompt = load_prompt("judge")
    items = [JudgeItem("q", "Where was it?", ("Lesotho",), candidate) for candidate in ("in Lesotho", "in Chad")]
    thoughts = "<think>\nIs it the same as Lesotho?\n</think>"
    lessons = []
    for item, verdict in zip(items, ("Yes", "No"), strict=True):
        fields = {"question": item.question, "answer": item.gold_answers[0], "candidate": item.candidate}
        request = ChatRequest(prompt, fields, 8, stop=("\n",))
        lessons += [(request.messages(), f"{thoughts}\n\n{verdict}"), (request.messages(), verdict)]
    model = checkpoint("qwen3", 3, lessons=lessons)
    inside = len(transformers.AutoTokenizer.from_pretrained(model).tokenize(thoughts)) - 2
    meter = Meter()

    def asked(name: str, **options: Any) -> CachedGenerator:
        return CachedGenerator(_client(server.base_url, ModelOptions("thinker", **options), name), None, meter)

    def judged(name: str, constrained: bool = False, **options: Any) -> tuple[list[tuple[bool | None, str]], int]:
        verdicts = GptEvalJudge(name, asked(name, **options), prompt, constrained=constrained).verdicts(items)
        return [(verdict.correct, verdict.raw) for verdict in verdicts], meter.snapshot()[name].thought_tokens

    more = ("--reasoning-parser", "qwen3")
    with VllmServer(model, "thinker", cache_tokens=4096, max_len=512, max_seqs=4, more=more) as server:
        right = [(True, "Yes"), (False, "No")]
        assert judged("thinks", thinking="drop", thinking_tokens=60) == (right, 2 * inside)
        assert judged("off", template_options={"enable_thinking": False}) == (right, 0)
        choice_of, counted = judged("constrained", constrained=True, thinking="drop", thinking_tokens=60)
        assert {raw for _, raw in choice_of} <= {"Yes", "No"} and counted == 2 * inside
        with pytest.raises(SettingsError, match='sent its thinking .* thinking = "drop" with thinking_tokens'):
            judged("refused")
        [stopped] = asked("stop", thinking="drop", thinking_tokens=60).complete([request])
        assert (stopped.text, stopped.finish_reason) == ("No", "stop")  # thoughts have line ends, too
        [cut] = asked("cut", thinking="drop", thinking_tokens=inside - 8).complete([request])
    counts = (cut.completion_tokens, cut.thought_tokens)
    assert (cut.text, cut.finish_reason, counts) == ("", "length", (inside, inside - 1))
    assert "cut: 1 reply was cut before the answer began. Raise thinking_tokens" in capsys.readouterr().err


def test_identities_without_these_settings_are_as_ever() -> None:
    assert ModelOptions("m", "r").identity == "m@r"
    plain, thinking = (ModelOptions("m", "r", extra={"a": 1}, **more) for more in ({}, {"thinking": "drop"}))
    assert plain.identity == "m@r+841f22f4" != thinking.identity


@pytest.mark.parametrize(
    ("content", "verdict"), [('{"answer": "Yes"}', True), ('{"answer": "No"}', False), ("Yes", True)]
)
def test_a_judge_is_constrained_by_a_json_schema(content: str, verdict: bool) -> None:
    with RudeServer([Fault(content=content)]) as server:
        generator = CachedGenerator(_client(server.base_url, ModelOptions("m"), "j", flavour="openai"), None)
        judge = GptEvalJudge("j", generator, load_prompt("judge"), constrained=True)
        [ruling] = judge.verdicts([JudgeItem("q", "Where?", ("Paris",), "in Paris")])
    schema = server.answered[0]["response_format"]["json_schema"]["schema"]
    assert ruling.correct is verdict and schema["properties"]["answer"]["enum"] == ["Yes", "No"]
