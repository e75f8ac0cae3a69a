"""What a pull says about annotations that give no verdict, each with what to do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from quit.common.rows import Row
from quit.text.words import counted

_ASK = {
    "empty": "nothing is ticked, not even 'None of these answers is correct', so this is no verdict. Which is meant?",
    "both": "'None of these answers is correct' is ticked, and so is an answer, so this is no verdict. Which is meant?",
    "gold": "the expected answer {} is not ticked, so there is no verdict on it. If it is wrong, tick 'The expected "
    "answer is wrong' too; else tick the answer.",
}
_MOST = 20  # questions to annotators that a pull lists


def questions_to_annotators(rows: Sequence[Row], links: Sequence[str]) -> list[str]:
    """Return what annotators have to be asked; ``links``: the address of each row's task, empty where the project has
    it no more."""
    lines = [
        f"Ask {row['annotator']} about {row['question_id']}: "
        + _ASK[row["ask"]].format(", ".join(map(repr, row["answers"])))
        + link
        for row, link in zip(rows[:_MOST], links)
    ]
    if len(rows) > _MOST:
        lines.append(
            f"{counted(len(rows) - _MOST, 'more page is', 'more pages are')} unclear: quit review status --json lists "
            "them all."
        )
    return lines


def about_uncounted(headers: Sequence[Row], unknown_choices: Mapping[tuple[int, int], list[str]]) -> list[str]:
    """Return what to say of all that does not count in these annotations, whichever pull brought it."""
    lines = []
    for row in headers:
        which = f"Annotation {row['annotation']} of task {row['task']}"
        if choices := unknown_choices.get((row["annotation"], row["version"])):
            lines.append(
                f"{which} holds choices that the task never had: {', '.join(choices)}. They are kept as rows of "
                "kind `unknown`; the rest of the annotation counts."
            )
        if row["state"] == "overwritten":
            lines.append(
                f"{which} by {row['annotator']} was changed by {row['editor']}: it does not count in this form (an "
                f"earlier version by {row['annotator']} does, if it was pulled). If it should, have "
                f"{row['annotator']} open it, change something (a note will do) and press Update."
            )
    copied = [row["annotator"] for row in headers if row["state"] == "copied"]
    if copied:
        lines.append(
            f"Not submitted on a page: {counted(len(copied), 'annotation')} by {', '.join(sorted({*copied}))}. A "
            "button (Create Annotations From Predictions, Propagate Annotations), an import or another program made "
            "what gives no verdict here. Label Studio counts the tasks as done until the next push opens them; what "
            "its annotator opens and updates is a verdict."
        )
    return lines


def about_deleted(counting: int, total: int) -> str:
    """Return what to do where many annotations are gone."""
    return (
        f"Of {counted(total, 'pulled annotation')}, {counted(counting, 'is', 'are')} gone at once: deleted, or the "
        "server was put back from a backup. Their reviews still count. If they are to be withdrawn: quit review pull "
        "--accept-withdrawals."
    )


def about_deleted_tasks(number: int) -> str:
    """Return what to do about deleted tasks that people had worked on."""
    return (
        f"Deleted on the server: {counted(number, 'task')} that people had worked on. Their reviews still count: a "
        "task that is deleted withdraws nothing. Push again to create the tasks again; to withdraw a review, delete "
        "the annotation, not the task."
    )
