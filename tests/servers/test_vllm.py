"""The real vLLM that other tests build on: it answers as taught, counts, constrains, dies and comes back."""

from pathlib import Path

import httpx
import pytest

from quit.errors import ServerError
from tests.servers.checkpoints import checkpoint, starter_lessons
from tests.servers.vllm import VllmServer

pytestmark = pytest.mark.slow


def ask(server: VllmServer, messages, **more) -> str:
    payload = {"model": server.name, "messages": messages, "temperature": 0, "max_tokens": 16, **more}
    reply = httpx.post(f"{server.base_url}/chat/completions", json=payload, timeout=300, trust_env=False)
    return reply.raise_for_status().json()["choices"][0]["message"]["content"]


def test_it_answers_as_taught_thinking_off_or_on(vllm: VllmServer) -> None:
    lessons = starter_lessons(20)
    off = {"chat_template_kwargs": {"enable_thinking": False}}
    assert [ask(vllm, messages, **off) for messages, _ in lessons] == [reply for _, reply in lessons]
    assert ask(vllm, lessons[0][0]).startswith("<think>")


def test_structured_outputs_leave_only_the_choices(vllm: VllmServer) -> None:
    said = ask(vllm, [{"role": "user", "content": "Is it?"}], structured_outputs={"choice": ["Yes", "No"]})
    assert said in ("Yes", "No")


def test_metrics_count_requests_and_cached_blocks(vllm: VllmServer) -> None:
    messages = [{"role": "user", "content": "word " * 300}]
    before = vllm.metrics()
    ask(vllm, messages)
    middle = vllm.metrics()
    ask(vllm, messages)
    after = vllm.metrics()
    whole = middle["prompt_tokens"] - before["prompt_tokens"]
    assert after["request_success"] - before["request_success"] == 2
    again = after["prompt_tokens_computed"] - middle["prompt_tokens_computed"]
    assert again == (whole - 1) % 32 + 1  # all full blocks come from the cache, but the last token is always computed


def test_it_comes_back_after_a_kill_on_the_same_port_with_nothing_remembered(vllm: VllmServer) -> None:
    ask(vllm, [{"role": "user", "content": "Who?"}])
    vllm.kill()
    assert not vllm.healthy()
    vllm.restart()
    assert vllm.metrics()["request_success"] == 0
    ask(vllm, [{"role": "user", "content": "Who?"}])


def test_a_server_that_cannot_start_says_why(tmp_path: Path) -> None:
    with pytest.raises(ServerError, match="No common block size"):
        VllmServer(checkpoint("llama", 2), "noise", block=16, log=tmp_path / "log").start()
