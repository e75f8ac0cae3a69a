"""Builds whose readers and judge are tiny models on real servers: lessons, a profile, and a build that is killed on its
way."""

import hashlib
import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from quit.models.prompting import load_prompt
from tests.processes import started, until
from tests.servers.checkpoints import STARTER, Lesson

ROOT = Path(__file__).parents[2]


def three_questions() -> list[str]:
    """Return the lines of the questions whose builds a taught model reads and judges: every other of the starter's
    first."""
    return STARTER.read_text(encoding="utf-8").splitlines()[1:7:2]


def reading_lessons(questions: Sequence[Mapping[str, Any]], reader: int) -> list[Lesson]:
    """Return lessons for a reader: three passages a question, told to be right, wrong or NO ANSWER by a hash.

    ``questions``: mappings with ``question``, ``answers`` and ``hints``. Other readers get other replies.
    """
    template = load_prompt("reader")
    lessons: list[Lesson] = []
    for place, row in enumerate(questions):
        other = questions[(place + 1) % len(questions)]
        for hints in (row["hints"][:1], row["hints"][:3], row["hints"][4::-1]):
            draw = hashlib.sha256(f"{reader} {len(hints)} {row['question']}".encode()).digest()[0] % 4
            reply = (row["answers"][0], row["answers"][0], other["answers"][0], "NO ANSWER")[draw]
            lessons.append((template.messages({"context": " ".join(hints), "question": row["question"]}), reply))
    return lessons


def judging_lessons(questions: Sequence[Mapping[str, Any]]) -> list[Lesson]:
    """Return lessons for a judge: each question's neighbour's answer is wrong, its own answer written out longer is
    right."""
    template = load_prompt("judge")
    lessons: list[Lesson] = []
    for place, row in enumerate(questions):
        gold, other = row["answers"][0], questions[(place + 1) % len(questions)]["answers"][0]
        for candidate, reply in ((f"the {gold} itself", "Yes"), (other, "No")):
            lessons.append(
                (template.messages({"question": row["question"], "answer": gold, "candidate": candidate}), reply)
            )
    return lessons


def write_profile(
    path: Path,
    readers: Mapping[str, tuple[str, str]],
    judge: tuple[str, str],
    *,
    concurrency: int = 8,
    more: str = "",
    template_options: str = "{ enable_thinking = false }",
) -> Path:
    """Write a profile whose labelers are ``readers``: name -> (model, base URL); ``judge`` likewise. ``more``: more
    TOML."""
    blocks = ['description = "Tiny models on real servers."', '[split]\nmethod = "share"', more]
    blocks.append(
        f'[judge]\nname = "gpt-eval"\nkind = "server"\nserver = "judge"\nmodel = "{judge[0]}"\nconstrained = true'
    )
    for name, (model, _) in readers.items():
        blocks.append(
            f'[[readers]]\nname = "{name}"\nrole = "labeler"\nkind = "server"\nserver = "{name}"\nmodel = "{model}"\n'
            f"template_options = {template_options}"
        )
    for name, (_, url) in {**readers, "judge": judge}.items():
        blocks.append(
            f'[[servers]]\nname = "{name}"\nbase_urls = ["{url}"]\nconcurrency = {concurrency}\npatience_seconds = 20'
        )
    path.write_text("\n\n".join(blocks) + "\n", encoding="utf-8")
    return path


def start_build(
    workspace: Path, profile: Path, source: str, cache: Path, home: Path, *more: str
) -> subprocess.Popen[bytes]:
    """Start ``quit build`` in a process group of its own; ``cache``: its generation cache's folder; log in
    ``W.log``."""
    command = ["build", "-w", str(workspace), "-p", str(profile), "-s", source, *more]
    return started(command, workspace.with_name("W.log"), home, QUIT_CACHE=str(cache))


def kill_when(process: subprocess.Popen[bytes], is_time: Callable[[], bool], seconds: float = 900) -> bool:
    """Kill a build (SIGKILL, all its processes) when it is time; returns False where it ended before."""
    until(lambda: process.poll() is not None or is_time(), seconds=seconds)
    in_time = process.poll() is None
    if in_time:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    return in_time
