"""vLLM in this process: run in vLLM's own environment, compared with transformers on the same checkpoint."""

import json
import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from quit.errors import MissingDependency, QuitError
from quit.models.generation import CachedGenerator, ChatRequest
from quit.models.generation.base import ModelOptions
from quit.models.generation.in_process import VllmGenerator
from quit.models.generation.local import TransformersGenerator
from quit.models.prompting import load_prompt
from tests.paths import ROOT
from tests.running import run_process
from tests.servers.checkpoints import checkpoint, starter_lessons
from tests.servers.vllm import vllm_environment

SCRIPT = """
import json, sys
import psutil
from quit.models.generation.base import ChatRequest, ModelOptions
from quit.models.generation.in_process import VllmGenerator
from quit.models.prompting import load_prompt

if __name__ == "__main__":
    model, questions = json.loads(sys.stdin.read())
    extra = {"max_model_len": 512, "enforce_eager": True, "dtype": "float32", "max_num_seqs": 8}
    options = ModelOptions(model, template_options={"enable_thinking": False}, extra=extra)
    engine = VllmGenerator("v", options, at_once=3)
    template = load_prompt(sys.argv[1])
    requests = [ChatRequest(template, {"question": question}, 8) for question in questions]
    requests.append(ChatRequest(template, {"question": questions[0]}, 8, choices=("Yes", "No")))
    replies = {}
    engine.generate(requests, lambda row, reply: replies.__setitem__(row, [reply.text, reply.prompt_tokens]))
    alive = len(psutil.Process().children(recursive=True))
    engine.release()
    engine.release()
    _, left = psutil.wait_procs(psutil.Process().children(recursive=True), timeout=30)
    left = [child for child in left if "resource_tracker" not in " ".join(child.cmdline())]
    print("REPLIES" + json.dumps([[replies[row] for row in range(len(requests))], alive, len(left)]))
"""


@pytest.mark.slow
def test_replies_are_those_of_transformers_and_a_released_engine_leaves_no_process(tmp_path: Path) -> None:
    programs = vllm_environment()
    prompt, script = tmp_path / "bare.txt", tmp_path / "child.py"
    prompt.write_text("### user\n{question}\n")
    script.write_text(SCRIPT)
    lessons = starter_lessons(20)
    model = str(checkpoint("qwen3", 1, lessons=lessons))
    questions = [messages[0]["content"] for messages, _ in lessons[:4]]
    environment = {"PATH": f"{programs}:/usr/bin:/bin", "PYTHONPATH": str(ROOT), "HOME": str(tmp_path)}
    environment |= {"HF_HUB_OFFLINE": "1", "VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_NO_USAGE_STATS": "1"}
    environment["VLLM_CACHE_ROOT"] = str(Path(os.environ["QUIT_TEST_CACHE"]) / "vllm")  # what it finds out of a class
    environment |= {"OMP_NUM_THREADS": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind"}
    sent = json.dumps([model, questions])
    result = run_process(programs / "python", script, prompt, stdin=sent, env=environment)
    [line] = [line for line in result.out.splitlines() if line.startswith("REPLIES")]
    (*replies, constrained), alive, left = json.loads(line.removeprefix("REPLIES"))
    plain = TransformersGenerator("t", ModelOptions(model, template_options={"enable_thinking": False}))
    template = load_prompt(str(prompt))
    requests = [ChatRequest(template, {"question": question}, 8) for question in questions]
    expected = CachedGenerator(plain, None).complete(requests)
    assert replies == [[reply.text, reply.prompt_tokens] for reply in expected]
    assert constrained[0] in ("Yes", "No")
    assert alive > 0 and left == 0  # the engine's processes, and what is left once it is released


class _Engine:
    """What vLLM's engine does here: the reply to the second prompt ends, or begins, as the test says."""

    second: tuple[str, str] | None = None

    def __init__(self, _: str, **options: Any) -> None:
        if "max_model_len" in options:
            raise ValueError("1 validation error for ModelConfig\n  Value error, too long\n    For further information")

    def chat(self, messages: list[Any], *_: Any, **__: Any) -> list[Any]:
        if self.second is None:
            raise ValueError("The decoder prompt (length 5000) is longer than the maximum model length of 4096.")
        ends = [("stop", "a0"), self.second, ("stop", "a2")]
        replies = [SimpleNamespace(finish_reason=end, text=text, token_ids=[1]) for end, text in ends]
        return [SimpleNamespace(outputs=[reply], prompt_token_ids=[1]) for reply in replies[: len(messages)]]


@pytest.mark.parametrize(
    ("second", "extra", "positions", "says"),
    [
        (("abort", "a1"), {}, [0, 2], "ended a reply with 'abort'"),
        (("stop", "<think>x</think>a1"), {}, [0, 2], "sent its thinking"),
        (None, {}, [], r"\(length 5000\) is longer .* The longest of these 3 is of question q1\."),
        (("stop", "a1"), {"max_model_len": 9}, [], "cannot load 'm': 1 validation error .* too long"),
    ],
)
def test_one_prompt_that_fails_keeps_the_replies_beside_it_and_is_said(
    monkeypatch: pytest.MonkeyPatch, second: Any, extra: dict[str, int], positions: list[int], says: str
) -> None:
    monkeypatch.setattr(_Engine, "second", second)
    monkeypatch.setitem(sys.modules, "vllm", SimpleNamespace(LLM=_Engine, SamplingParams=lambda **_: None))
    texts, kept = ["Who?", "Who is it, after all?", "Why?"], list[int]()
    requests = [ChatRequest(load_prompt("probe"), {"question": text}, 8, group=f"q{n}") for n, text in enumerate(texts)]
    with pytest.raises(QuitError, match=says):
        VllmGenerator("v", ModelOptions("m", extra=extra)).generate(requests, lambda position, _: kept.append(position))
    assert kept == positions


def test_without_vllm_the_message_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "vllm", None)
    with pytest.raises(MissingDependency, match="pip install"):
        request = ChatRequest(load_prompt("probe"), {"question": "Who?"}, 8)
        VllmGenerator("v", ModelOptions("m")).generate([request], lambda row, reply: None)
