"""Prompt files against the paper's figures, and what makes a bad one."""

import re
from pathlib import Path

import pytest

from quit.errors import SettingsError
from quit.models.language_models import reader_prompts
from quit.models.prompting import load_prompt
from quit.settings import ReaderSettings


def test_the_reader_prompt_is_figure_8() -> None:
    messages = load_prompt("reader").messages({"context": "A hint. Another.", "question": "Which?"})
    assert [message["role"] for message in messages] == ["system"] + ["user", "assistant"] * 5 + ["user"]
    assert messages[-1]["content"] == "Context: A hint. Another.\nQuestion: Which?"
    answers = [message["content"] for message in messages if message["role"] == "assistant"]
    assert answers == ["Barack Obama", "France", "Winter", "AMERICAN FOOTBALL", "Adolf Hitler"]
    for condition in ("1. Answer should not be sentences.", "2. Do not generate", "3. Do not", '"NO ANSWER".'):
        assert condition in messages[1]["content"]


def test_the_scripts_prompt_is_figure_8_in_their_layout() -> None:
    """The instruction in every turn; fields, and the hints of the examples, on lines of their own (by_server.py)."""
    prompt, _ = reader_prompts(ReaderSettings(name="a", role="reader", prompt="reader_scripts"))
    fields = {"context": "A hint. Another.", "question": "Which?"}
    figure, scripts = load_prompt("reader").messages(fields), prompt.messages(fields)
    instruction = re.escape(figure[1]["content"].partition("\n\n")[0])
    contexts = []
    for message, laid_out in zip(figure, scripts, strict=True):
        turn = re.search(r"Context: (.+)\nQuestion: (.+)", message["content"])
        if turn is None:
            assert laid_out == message  # the system's, and the answers
            continue
        layout = rf"{instruction}\n\nContext:\n((?:.+\n)+)\nQuestion:\n(.+)\n\nAnswer:"
        fields_of_turn = re.fullmatch(layout, laid_out["content"])
        assert fields_of_turn and fields_of_turn[2] == turn[2]
        contexts.append(fields_of_turn[1].splitlines())
        assert " ".join(contexts[-1]) == turn[1]
    assert [len(lines) for lines in contexts] == [5, 5, 5, 5, 5, 1]


def test_braces_in_a_value_stay_as_they_are_and_the_hash_follows_the_text(tmp_path: Path) -> None:
    fields = {"context": "{question} {answer}", "question": "{context}"}
    assert load_prompt("reader").messages(fields)[-1]["content"] == "Context: {question} {answer}\nQuestion: {context}"
    path, hashes = tmp_path / "mine.txt", set()
    for text in ("### user\n{question}\n", "### user\n{question}!\n"):
        path.write_text(text)
        hashes.add(load_prompt(str(path), frozenset({"question"})).sha)
    assert len(hashes) == 2


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("no turns at all", "needs turns"),
        ("### user\n{question}\n### assistant\nx", "end with the user's"),
        ("### user\n{q}", "{question}"),
        (None, "Did you mean 'reader'"),
        ("Be brief.\n### user\n{question}", "the first on its first line"),
        ("### user\nCaf\xe9? {question}", "cannot be read .*Save it as UTF-8"),
    ],
)
def test_a_bad_prompt_is_explained(tmp_path: Path, text: str | None, says: str) -> None:
    path = tmp_path / "mine.txt"
    path.write_text(text or "", "latin-1")
    with pytest.raises(SettingsError, match=says):
        load_prompt("raeder" if text is None else str(path), frozenset({"question"}))


def test_windows_byte_order_mark_and_line_ends_change_no_prompt(tmp_path: Path) -> None:
    lines = "### system\nBe brief.\n### user\n{question}\n"
    for name, text in (("plain", lines), ("windows", "\ufeff" + lines.replace("\n", "\r\n"))):
        (tmp_path / f"{name}.txt").write_text(text, "utf-8", newline="")
    prompts = [load_prompt(str(tmp_path / f"{name}.txt")) for name in ("plain", "windows")]
    assert prompts[0].turns == prompts[1].turns == (("system", "Be brief."), ("user", "{question}"))
    assert prompts[0].sha == prompts[1].sha
