"""What a person does in Label Studio during the tutorial, done through the server's interface."""

from pathlib import Path

from quit.annotation.client import connect
from quit.engine.workspace import Workspace
from quit.settings import Settings
from quit.text.normalize import normalize_answer
from tests.label_studio import annotate, page_result

ALSO_RIGHT = {("jsonl-istanbul", "constantinople")}


def verify_all(workspace: Path) -> None:
    """Submit every task of the workspace's local server as the judge has it, with ``ALSO_RIGHT`` ticked."""
    opened = Workspace.open(workspace)
    right = {(row["question_id"], row["answer_key"]) for row in opened.read("verdicts").to_pylist() if row["correct"]}
    for row in opened.read("questions").to_pylist():
        right |= {(row["question_id"], normalize_answer(answer)) for answer in row["answers"]}
    server = connect(opened.path, Settings().review)
    [project] = server.ask(lambda studio: list(studio.projects.list()))
    for task in list(server.tasks(project.id, ["id", "meta", "data"])):
        question = task.meta["key"]
        keys = [row["key"] for row in task.data["answers"] if (question, row["key"]) in right | ALSO_RIGHT]
        annotate(server, task.id, page_result(question, *keys, shown=task.meta["version"]))
