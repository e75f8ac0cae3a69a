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


TWO = """
import json, sys
import psutil
from quit.models.generation.base import ChatRequest, ModelOptions
from quit.models.generation.in_process import VllmGenerator
from quit.models.prompting import load_prompt

if __name__ == "__main__":
    models, questions = json.loads(sys.stdin.read())
    extra = {"max_model_len": 512, "enforce_eager": True, "dtype": "float32", "max_num_seqs": 8}
    engines = [VllmGenerator(model, ModelOptions(model, extra=extra)) for model in models]
    template = load_prompt(sys.argv[1])
    seen = []
    for engine in engines:
        replies = {}
        engine.generate(
            [ChatRequest(template, {"question": question}, 8) for question in questions],
            lambda position, completion: replies.__setitem__(position, completion.text),
        )
        alive = len(psutil.Process().children(recursive=True))
        engine.release()
        engine.release()
        _, left = psutil.wait_procs(psutil.Process().children(recursive=True), timeout=30)
        left = [child for child in left if "resource_tracker" not in " ".join(child.cmdline())]
        seen.append([[replies[position] for position in range(len(questions))], alive, len(left)])
    print("REPLIES" + json.dumps(seen))
"""


def _in_vllm(programs: Path, script: str, folder: Path, given: list, *arguments: str) -> list:
    """Return what a script in vLLM's environment prints after REPLIES."""
    (folder / "child.py").write_text(script)
    done = subprocess.run(
        [str(programs / "python"), str(folder / "child.py"), *arguments],
        input=json.dumps(given),
        capture_output=True,
        text=True,
        timeout=400,
        env={
            **{"PATH": f"{programs}:/usr/bin:/bin", "PYTHONPATH": str(ROOT), "HOME": str(folder)},
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
    return json.loads(line.removeprefix("REPLIES"))


@pytest.mark.slow
def test_two_engines_run_one_after_the_other_in_one_process(tmp_path: Path) -> None:
    programs = vllm_environment()
    prompt = tmp_path / "bare.txt"
    prompt.write_text("### user\n{question}\n")
    lessons = starter_lessons(4)
    other = [(messages, "Paris") for messages, _ in lessons]
    models = [str(checkpoint("llama", 3, lessons=taught)) for taught in (lessons, other)]
    first, second = _in_vllm(
        programs, TWO, tmp_path, [models, [messages[0]["content"] for messages, _ in lessons]], str(prompt)
    )
    assert first[0] == [reply for _, reply in lessons] and second[0] == ["Paris"] * 4
    assert first[1] > 0 and (first[2], second[2]) == (0, 0)  # an engine's processes, and what is left once released


@pytest.mark.slow
def test_replies_are_those_of_transformers(tmp_path: Path) -> None:
    programs = vllm_environment()
    prompt = tmp_path / "bare.txt"
    prompt.write_text("### user\n{question}\n")
    lessons = starter_lessons(20)
    model = checkpoint("qwen3", 1, lessons=lessons)
    questions = [messages[0]["content"] for messages, _ in lessons[:7]]
    *replies, constrained = _in_vllm(programs, CHILD, tmp_path, [str(model), questions], str(prompt))
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
