"""What a person does in Label Studio during the tutorial, done through the server's interface: ``python -m
tests.docs.annotator W``."""

from __future__ import annotations

import sys
from pathlib import Path

from annotation.client import Server, connect
from annotation.tasks import alias
from quit.engine.workspace import Workspace
from quit.evaluate.normalize import normalize_answer
from quit.settings import Settings

ALSO_RIGHT = {("jsonl-istanbul", "constantinople")}


def verify_all(workspace: Path) -> int:
    """Submit every task of the workspace's local server as the judge has it, with ``ALSO_RIGHT`` ticked; return how
    many."""
    opened = Workspace.open(workspace)
    right = {(row["question_id"], row["answer_key"]) for row in opened.read("verdicts").to_pylist() if row["correct"]}
    for row in opened.read("questions").to_pylist():
        right |= {(row["question_id"], normalize_answer(answer)) for answer in row["answers"]}
    server = connect(opened.path, Settings().review)
    [project] = server.ask(lambda studio: list(studio.projects.list()))
    tasks = list(server.tasks(project.id, ["id", "meta", "data"]))
    for task in tasks:
        question = task.meta["key"]
        keys = [row["key"] for row in task.data["answers"] if (question, row["key"]) in right | ALSO_RIGHT]
        entries = [("shown", "textarea", {"text": [str(task.meta["version"])]})]
        entries += [("correct", "choices", {"choices": [alias(question, key) for key in keys]})] if keys else []
        result = [
            {"from_name": name, "to_name": "question", "type": kind, "value": value} for name, kind, value in entries
        ]
        _submit(server, task.id, result)
    return len(tasks)


def _submit(server: Server, task: int, result: list[dict]) -> None:
    server.ask(lambda studio: studio.annotations.create(task, result=result, lead_time=12.0))


if __name__ == "__main__":
    print(verify_all(Path(sys.argv[1])))
