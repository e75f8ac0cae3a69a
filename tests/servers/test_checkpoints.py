"""Checkpoints the tests make: the same bytes for the same arguments, read by transformers, taught what they were
told."""

import hashlib
import subprocess
import sys
from pathlib import Path

import pytest

from tests.servers.checkpoints import Shape, make_checkpoint, starter_lessons

TINY = Shape(layers=1, hidden=64, heads=2, vocabulary=600, context=512)


def digests(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.iterdir())}


def answer(folder: Path, messages, **options) -> str:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModelForCausalLM.from_pretrained(folder)
    ids = tokenizer.apply_chat_template(
        messages, add_generation_prompt=True, return_tensors="pt", return_dict=False, **options
    )
    made = model.generate(ids, max_new_tokens=8, do_sample=False)[0, ids.shape[1] :]
    return tokenizer.decode(made, skip_special_tokens=True)


@pytest.mark.slow
def test_same_arguments_same_bytes_in_another_process(tmp_path: Path) -> None:
    make_checkpoint(tmp_path / "a", 3, shape=TINY, lessons=starter_lessons(4))
    code = (
        "from pathlib import Path; from tests.servers.checkpoints import "
        f"*;make_checkpoint(Path({str(tmp_path / 'b')!r}), 3, shape=Shape(1, 64, 2, 32, 600, 512), "
        "lessons=starter_lessons(4))"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parents[2])
    make_checkpoint(tmp_path / "c", 4, shape=TINY, lessons=starter_lessons(4))
    assert digests(tmp_path / "a") == digests(tmp_path / "b")
    assert digests(tmp_path / "a")["model.safetensors"] != digests(tmp_path / "c")["model.safetensors"]


@pytest.mark.slow
@pytest.mark.parametrize("style", ["llama", "qwen2", "qwen3"])
def test_a_taught_checkpoint_answers_its_lessons(style: str, tmp_path: Path) -> None:
    lessons = starter_lessons(6)
    make_checkpoint(tmp_path, 1, style=style, lessons=lessons)
    said = [answer(tmp_path, messages, enable_thinking=False) for messages, _ in lessons]
    assert said == [reply for _, reply in lessons]


@pytest.mark.slow
def test_qwen3_thinks_unless_told_not_to(tmp_path: Path) -> None:
    messages, reply = starter_lessons(1)[0]
    make_checkpoint(tmp_path, 1, style="qwen3", lessons=[(messages, reply)])
    assert answer(tmp_path, messages) == f"<think></think>{reply}"
    assert answer(tmp_path, messages, enable_thinking=False) == reply


def test_a_tied_read_out_cannot_be_taught(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="gemma3"):
        make_checkpoint(tmp_path, 1, style="gemma3", lessons=starter_lessons(1))
