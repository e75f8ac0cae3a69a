"""vLLM in this process: run in vLLM's own environment, compared with transformers on the same checkpoint."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from quit.errors import MissingDependency
from quit.models.generation import ChatRequest, Completion
from quit.models.generation.base import ModelOptions
from quit.models.generation.in_process import VllmGenerator
from quit.models.generation.local import TransformersGenerator
from quit.models.prompting import load_prompt
from tests.servers.checkpoints import checkpoint, starter_lessons
from tests.servers.vllm import vllm_environment

ROOT = Path(__file__).parents[3]
CHILD = """
import json, sys
from quit.models.generation.base import ChatRequest, ModelOptions
from quit.models.generation.in_process import VllmGenerator
from quit.models.prompting import load_prompt

if __name__ == "__main__":
    model, questions = json.loads(sys.stdin.read())
    extra = {"max_model_len": 512, "enforce_eager": True, "dtype": "float32", "max_num_seqs": 8}
    options = ModelOptions(model, template_options={"enable_thinking": False}, extra=extra)
    generator = VllmGenerator("v", options, at_once=3)
    template = load_prompt(sys.argv[1])
    requests = [ChatRequest(template, {"question": question}, 8) for question in questions]
    requests.append(ChatRequest(template, {"question": questions[0]}, 8, choices=("Yes", "No")))
    replies = {}

    def done(position, completion):
        replies[position] = [completion.text, completion.finish_reason, completion.prompt_tokens]

    generator.generate(requests, done)
    print("REPLIES" + json.dumps([replies[position] for position in range(len(requests))]))
"""


@pytest.mark.slow
def test_replies_are_those_of_transformers(tmp_path: Path) -> None:
    programs = vllm_environment()
    prompt = tmp_path / "bare.txt"
    prompt.write_text("### user\n{question}\n")
    lessons = starter_lessons(20)
    model = checkpoint("qwen3", 1, lessons=lessons)
    questions = [messages[0]["content"] for messages, _ in lessons[:7]]
    (tmp_path / "child.py").write_text(CHILD)
    done = subprocess.run(
        [str(programs / "python"), str(tmp_path / "child.py"), str(prompt)],
        input=json.dumps([str(model), questions]),
        capture_output=True,
        text=True,
        timeout=400,
        env={
            **{"PATH": f"{programs}:/usr/bin:/bin", "PYTHONPATH": str(ROOT), "HOME": str(tmp_path)},
            **{
                "HF_HUB_OFFLINE": "1",
                "VLLM_CPU_KVCACHE_SPACE": "1",
                "VLLM_NO_USAGE_STATS": "1",
                "OMP_NUM_THREADS": "1",
            },
            **{"VLLM_CPU_OMP_THREADS_BIND": "nobind"},
        },
    )
    line = next((line for line in done.stdout.splitlines() if line.startswith("REPLIES")), None)
    assert line is not None, done.stderr[-3000:]
    *replies, constrained = json.loads(line.removeprefix("REPLIES"))
    plain = TransformersGenerator("t", ModelOptions(str(model), template_options={"enable_thinking": False}))
    expected: dict[int, Completion] = {}
    template = load_prompt(str(prompt))
    plain.generate([ChatRequest(template, {"question": question}, 8) for question in questions], expected.__setitem__)
    assert [reply[0] for reply in replies] == [expected[row].text for row in range(7)]
    assert [reply[2] for reply in replies] == [expected[row].prompt_tokens for row in range(7)]
    assert constrained[0] in ("Yes", "No")


def test_without_vllm_the_message_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "vllm", None)
    with pytest.raises(MissingDependency, match="pip install"):
        VllmGenerator("v", ModelOptions("m")).generate(
            [ChatRequest(load_prompt("probe"), {"question": "Who?"}, 8)], lambda row, reply: None
        )
